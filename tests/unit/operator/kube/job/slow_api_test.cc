// An API that takes its time: the reconciler goes on meanwhile with what need not be stored first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/state/messages.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {
namespace {

using controller::Role;
using controller::SlotId;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::SizeIs;

class SlowApiTest : public JobReconcilerRig {
 protected:
  /// Each request whose target has this in it takes so long that `event` happens on the way.
  void Delay(const std::string& target, std::function<void()> event) {
    server_.SetFaults([target, event = std::move(event)](const HttpRequest& request) {
      if (request.method == "GET" || request.target.find(target) == std::string::npos) {
        return MemoryApiServer::Fault::kNone;
      }
      event();
      return MemoryApiServer::Fault::kDelay;
    });
  }

  /// How many stray processes had been refused when a change was made, for each change of a kind.
  void CountRefusedAt(const std::string& plural, std::vector<std::size_t>& counts) {
    server_.SetObserver([this, plural, &counts](const MemoryApiStore::Change& change) {
      if (change.resource.ends_with("/" + plural)) {
        counts.push_back(control_.Sent<controller::Refused>().size());
      }
    });
  }

  void JoinAsStray() {
    controller::Join join;
    join.id = SlotId{Role::kWorker, 99};
    control_.Tell(++strays_, join);
  }

  void JoinAsDataServer() {
    controller::Join join;
    join.id = SlotId{Role::kDataServer, 0};
    join.uid = "a process";
    join.address = "address:1";
    join.generation = 1;
    control_.Tell(1, join);
  }

  controller::ConnectionId strays_ = 100;
};

TEST_F(SlowApiTest, WhatHappensWhileTheStatusIsWrittenIsAnsweredMeanwhile) {
  Lead(Json::object());
  Delay("/status", [this] { JoinAsStray(); });
  std::vector<std::size_t> refused;
  CountRefusedAt("trainingjobs", refused);
  Work();
  EXPECT_THAT(refused, AllOf(SizeIs(testing::Ge(1u)), Contains(testing::Ge(1u))));
}

TEST_F(SlowApiTest, WhatMustBeStoredFirstWaitsForIt) {
  Lead(Json::object());
  Delay("/configmaps", [this] { JoinAsStray(); });
  std::vector<std::size_t> refused;
  CountRefusedAt("configmaps", refused);
  Work();
  EXPECT_THAT(refused, AllOf(SizeIs(testing::Ge(1u)), Contains(0u)));
  EXPECT_GE(control_.Sent<controller::Refused>().size(), refused.size()) << "later it is answered";
}

TEST_F(SlowApiTest, WhatIsDecidedWhileTheStatusIsWrittenIsStoredBeforeTheWorkEnds) {
  Lead(Json::object());
  Work();
  bool joined = false;
  Delay("/status", [this, &joined] {
    if (!std::exchange(joined, true)) {
      JoinAsDataServer();
    }
  });
  clock_.Advance(std::chrono::seconds(60));  // the status says then that it was looked at
  const Clock::TimePoint next = WorkOn(Objects());
  EXPECT_TRUE(joined);
  EXPECT_THAT(control_.Sent<controller::Welcome>(), SizeIs(1)) << "which waits until it is stored";
  EXPECT_LE(next, clock_.Now()) << "pods and the status may have to follow";
}

}  // namespace
}  // namespace adamant::kube
