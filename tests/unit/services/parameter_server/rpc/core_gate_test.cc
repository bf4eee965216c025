#include "services/parameter_server/rpc/core_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/unit/services/parameter_server/rpc/lone_server.h"

namespace adamant::parameter_server {
namespace {

class CoreGateTest : public ::testing::Test {
 protected:
  LoneServer server_{{}};
  ParameterServer& core_ = server_.core();
  CoreGate gate_;
};

TEST_F(CoreGateTest, LetsInOnlyWhileOpen) {
  EXPECT_FALSE(gate_.Enter());
  EXPECT_FALSE(gate_.is_open());
  gate_.Open(core_);
  EXPECT_TRUE(gate_.Enter());
  EXPECT_TRUE(gate_.is_open());
  gate_.Close();
  EXPECT_FALSE(gate_.Enter());
}

TEST_F(CoreGateTest, CloseWaitsForThoseInside) {
  gate_.Open(core_);
  std::atomic<bool> left = false;
  std::atomic<bool> entered = false;
  std::thread visitor([&] {
    const CoreGate::Pass pass = gate_.Enter();
    entered = true;
    while (gate_.Enter()) {  // until Close has begun
    }
    left = true;
  });
  while (!entered) {
    std::this_thread::yield();
  }
  gate_.Close();
  EXPECT_TRUE(left);
  visitor.join();
}

}  // namespace
}  // namespace adamant::parameter_server
