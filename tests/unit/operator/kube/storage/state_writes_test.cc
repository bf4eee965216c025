// How often a job's state is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {
namespace {

using controller::Role;
using controller::SlotId;
using testing::ElementsAre;
using testing::SizeIs;

class StateWritesTest : public JobReconcilerRig {
 protected:
  void SetUp() override {
    Lead(Json::object());
    Work();
    server_.SetObserver([this](const MemoryApiStore::Change& change) {
      if (change.resource.ends_with("/configmaps")) {
        welcomed_at_.push_back(control_.Sent<controller::Welcome>().size());
      }
    });
  }

  void Join(controller::ConnectionId connection, SlotId id) {
    controller::Join join;
    join.id = id;
    join.uid = "process " + std::to_string(connection);
    join.generation = 1;
    control_.Tell(connection, join);
  }

  void EndPods(int code) {
    for (const Json& seen : List(kPods)) {
      Json pod = seen;
      pod["status"] = {{"phase", "Failed"},
                       {"containerStatuses",
                        Json::array({{{"name", "adamant"},
                                      {"state", {{"terminated", {{"exitCode", code}}}}}}})}};
      ASSERT_TRUE(client_.Update(kPods, pod, "status").ok());
    }
  }

  [[nodiscard]] Json Status() const {
    return client_.Get(kTrainingJobs, kJob.key).value()["status"];
  }

  std::vector<std::size_t> welcomed_at_;  // how many members had been, at each write of the state
};

TEST_F(StateWritesTest, WhatHasHappenedByThenIsOneWriteAndIsToldOnlyAfterIt) {
  Join(1, {Role::kDataServer, 0});
  Join(2, {Role::kParameterServer, 0});
  Join(3, {Role::kWorker, 0});
  WorkOn(Objects());
  EXPECT_THAT(welcomed_at_, ElementsAre(0));
  EXPECT_THAT(control_.Sent<controller::Welcome>(), SizeIs(3));
}

TEST_F(StateWritesTest, WhatHappensDuringAWriteIsInTheNext) {
  bool first = true;
  server_.SetFaults([&](const HttpRequest& request) {
    if (request.method == "GET" || !first) {
      return MemoryApiServer::Fault::kNone;
    }
    first = false;
    Join(2, {Role::kParameterServer, 0});
    Join(3, {Role::kWorker, 0});
    return MemoryApiServer::Fault::kDelay;
  });
  Join(1, {Role::kDataServer, 0});
  WorkOn(Objects());
  EXPECT_THAT(welcomed_at_, ElementsAre(0, 0));
  EXPECT_THAT(control_.Sent<controller::Welcome>(), SizeIs(3));
}

// Another controller may yet go on with it; a job whose status says that it has ended has none.
TEST_F(StateWritesTest, AnEndIsToldOnlyOnceItIsStored) {
  server_.SetFaults([](const HttpRequest& request) {
    return request.method != "GET" && request.target.find("/configmaps") != std::string::npos
               ? MemoryApiServer::Fault::kRefuse
               : MemoryApiServer::Fault::kNone;
  });
  EndPods(2);  // a configuration that is refused ends the job
  WorkOn(Objects());
  EXPECT_NE(Status()["phase"], "Failed");
  EXPECT_FALSE(Status().contains("completionTime"));

  server_.SetFaults(nullptr);
  WorkAfter(std::chrono::minutes(1));
  EXPECT_EQ(Status()["phase"], "Failed");
  EXPECT_TRUE(Status().contains("completionTime"));
}

TEST_F(StateWritesTest, AllThatHaveEndedAreOneWrite) {
  EndPods(1);
  WorkOn(Objects());
  EXPECT_THAT(welcomed_at_, SizeIs(1));
}

}  // namespace
}  // namespace adamant::kube
