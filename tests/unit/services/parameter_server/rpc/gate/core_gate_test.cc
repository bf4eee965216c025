#include "services/parameter_server/rpc/gate/core_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "services/common/base/busy_meter.h"
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

TEST_F(CoreGateTest, WhoeverStaysInsideIsBusy) {
  using std::chrono::seconds;
  gate_.Open(core_);
  BusyMeter meter;
  Clock::TimePoint now{seconds(1)};
  const auto busy = [&] { return meter.Look(gate_.Turns(), now += seconds(1)); };
  {
    const CoreGate::Pass held = gate_.Enter();
    busy();
    for (int i = 1; i <= 3; ++i) {
      EXPECT_TRUE(gate_.Enter());  // others come and go
      EXPECT_EQ(busy(), seconds(i));
    }
  }
  EXPECT_EQ(busy(), seconds(0));
  gate_.Close();
  EXPECT_FALSE(gate_.Enter());
  EXPECT_EQ(busy(), seconds(0));
}

}  // namespace
}  // namespace adamant::parameter_server
