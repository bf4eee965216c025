#include "operator/kube/job/action_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "operator/kube_client/api/event_recorder.h"
#include "tests/unit/operator/kube/storage/state_store_rig.h"

namespace adamant::kube {
namespace {

using controller::Export;
using controller::Note;
using controller::Persist;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class ActionQueueTest : public StateStoreRig {
 protected:
  static Persist StateOf(std::uint64_t term) { return {Stored(StateWith(term, 0))}; }

  void FailWrites(Fault fault) {
    server_.SetFaults([fault](const HttpRequest& request) {
      return request.method == "GET" ? Fault::kNone : fault;
    });
  }

  // The API is well again, and the next request to it may be tried.
  void EndFaults() {
    server_.SetFaults(nullptr);
    clock_.Advance(seconds(1));
  }

  // What another controller has written.
  void WriteAsAnother() {
    KubeStateStore other = NewStore("another");
    ASSERT_TRUE(other.Load().ok());
    ASSERT_TRUE(other.CompareAndSwap(0, Stored(StateWith(9, 0))).ok());
  }

  // Each by its name, with the version of the state that was stored by then.
  std::vector<std::pair<std::string, std::uint64_t>> performed_;

  EventRecorder events_{NewClient(), {.component = "operator", .instance = "a"}, clock_, sleeper_};
  KubeStateStore store_ = NewStore("a");
  JobWriter writer_{NewClient(), kJob, events_, clock_, [](const std::string& /*why*/) {}};
  PodNodes nodes_{clock_};
  RestartCounter restarts_;
  JobNotes notes_{writer_, nodes_, restarts_};
  ActionQueue queue_{store_, writer_, notes_, clock_, [this](const controller::Action& action) {
                       const auto* wanted = std::get_if<Export>(&action);
                       performed_.emplace_back(wanted != nullptr
                                                   ? "export " + std::to_string(wanted->snapshot)
                                                   : std::get<Note>(action).text,
                                               Reload().version);
                     }};
};

TEST_F(ActionQueueTest, WhatDependsOnADecisionIsPerformedOnceThatIsStored) {
  queue_.Perform({Export{1}, StateOf(1), Export{2}, Export{3}});
  EXPECT_THAT(performed_,
              ElementsAre(Pair("export 1", 0), Pair("export 2", 1), Pair("export 3", 1)));
  EXPECT_TRUE(queue_.IsClear());
}

TEST_F(ActionQueueTest, TheVersionThatWasReadIsTheOneThatIsReplaced) {
  WriteAsAnother();
  ASSERT_TRUE(store_.Load().ok());
  queue_.StartFrom(1);
  queue_.Perform({StateOf(10), Export{1}});
  EXPECT_THAT(performed_, ElementsAre(Pair("export 1", 2)));
}

TEST_F(ActionQueueTest, WhatCannotBeStoredIsHeldWithWhatDependsOnItAndStoredLater) {
  FailWrites(Fault::kRefuse);
  queue_.Perform({StateOf(1), Export{1}});
  EXPECT_THAT(performed_, IsEmpty());
  EXPECT_TRUE(queue_.holds());
  EXPECT_FALSE(queue_.IsClear());
  EndFaults();
  EXPECT_TRUE(queue_.StoreHeld().ok());
  EXPECT_THAT(performed_, ElementsAre(Pair("export 1", 1)));
  EXPECT_FALSE(queue_.holds());
  EXPECT_TRUE(queue_.IsClear());
}

TEST_F(ActionQueueTest, WhatDependsOnNothingGoesOnWhileSomethingIsHeld) {
  FailWrites(Fault::kRefuse);
  queue_.Perform({StateOf(1), Export{1}});
  queue_.Perform({Note{.text = "a note"}});
  EXPECT_THAT(performed_, ElementsAre(Pair("a note", 0)));
}

TEST_F(ActionQueueTest, AnApiThatIsAwayIsNotAskedAgainAtOnce) {
  FailWrites(Fault::kRefuse);
  queue_.Perform({StateOf(1)});
  server_.SetFaults(nullptr);
  EXPECT_TRUE(absl::IsUnavailable(queue_.StoreHeld()));
  EXPECT_EQ(Reload().version, 0u);
}

TEST_F(ActionQueueTest, WhatTheApiRefusesIsKnownToTheWriter) {
  FailWrites(Fault::kInvalid);
  queue_.Perform({StateOf(1)});
  clock_.Advance(seconds(3));
  EXPECT_TRUE(absl::IsInvalidArgument(queue_.StoreHeld()));
  EXPECT_THAT(writer_.failed().Lasting(clock_.Now()),
              ElementsAre(Field(&FailedWrites::Failure::what, "update the job's state")));
}

TEST_F(ActionQueueTest, WhatIsFoundToBeLostIsTold) {
  queue_.Perform({Persist{{Row(4, "row")}}});
  events_.Step();
  const auto events = NewClient().List(kEvents, {.ns = kJob.key.ns}).value();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0]["message"].get<std::string>(), HasSubstr("no results of epochs 1 to 3"));
}

TEST_F(ActionQueueTest, OneWriteCarriesWhatIsHandledTogether) {
  queue_.Together([this] {
    queue_.Perform({Export{1}, StateOf(1), Export{2}});
    queue_.Perform({StateOf(2), Export{3}});
  });
  EXPECT_THAT(performed_,
              ElementsAre(Pair("export 1", 0), Pair("export 2", 1), Pair("export 3", 1)));
  EXPECT_EQ(StateIn(Reload()), StateWith(2, 0));
}

TEST_F(ActionQueueTest, WhatIsToBeStoredWhileARequestWaitsIsHeld) {
  queue_.Meanwhile([this] {
    queue_.Together([this] { queue_.Perform({Note{.text = "a note"}, StateOf(1), Export{1}}); });
  });
  EXPECT_THAT(performed_, ElementsAre(Pair("a note", 0)));
  EXPECT_TRUE(queue_.holds());
  EXPECT_TRUE(queue_.StoreHeld().ok());
  EXPECT_THAT(performed_, ElementsAre(Pair("a note", 0), Pair("export 1", 1)));
}

TEST_F(ActionQueueTest, WhatIsDecidedWhileAnotherStateIsStoredIsStoredTooBeforeWhatDependsOnIt) {
  bool decided = false;
  server_.SetFaults([&](const HttpRequest& request) {
    if (request.method != "GET" && !std::exchange(decided, true)) {
      queue_.Meanwhile([this] { queue_.Perform({StateOf(2), Export{2}}); });
    }
    return Fault::kNone;
  });
  queue_.Perform({StateOf(1), Export{1}});
  EXPECT_THAT(performed_, ElementsAre(Pair("export 1", 2), Pair("export 2", 2)));
  EXPECT_EQ(StateIn(Reload()), StateWith(2, 0));
}

TEST_F(ActionQueueTest, AfterAnotherControllerHasWrittenNothingIsPerformed) {
  WriteAsAnother();
  queue_.Perform({StateOf(1), Export{1}});
  queue_.Perform({Note{.text = "a note"}});
  EXPECT_THAT(performed_, IsEmpty());
  EXPECT_TRUE(absl::IsAborted(queue_.taken_over()));
  EXPECT_TRUE(absl::IsAborted(queue_.StoreHeld()));
  EXPECT_EQ(StateIn(Reload()), StateWith(9, 0));
}

TEST_F(ActionQueueTest, WhoHearsThatAnotherLeadsPerformsNothing) {
  queue_.OnTakenOver(absl::AbortedError("another leads"));
  queue_.Perform({Export{1}});
  EXPECT_THAT(performed_, IsEmpty());
  EXPECT_EQ(queue_.StoreHeld(), absl::AbortedError("another leads"));
}

}  // namespace
}  // namespace adamant::kube
