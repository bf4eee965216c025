#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/commands.h"
#include "tests/unit/operator/cli/kubectl/acting_sleeper.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

// Commands that go on until the job is over.
namespace adamant::kubectl {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class FollowTest : public testing::Test {
 protected:
  FollowTest() { rig_.PutJob("Running"); }

  /// `act` is called with the number of each wait of the command.
  Session SessionThat(std::function<void(int wait)> act) {
    sleeper_ = std::make_unique<ActingSleeper>(rig_.clock, std::move(act));
    Session session = rig_.NewSession();
    return {.client = session.client,
            .ns = session.ns,
            .clock = session.clock,
            .sleeper = *sleeper_,
            .cancellation = session.cancellation,
            .print = session.print};
  }

  template <class Flags>
  static Flags Following() {
    Flags flags;
    flags.target.job = "mnist";
    return flags;
  }

  void SetPhase(const std::string& phase) {
    Json job = *rig_.client.Get(kube::kTrainingJobs, {"training", "mnist"});
    job["status"]["phase"] = phase;
    ASSERT_TRUE(rig_.client.Update(kube::kTrainingJobs, job, "status").ok());
  }
  void Refuse(bool refuses) {
    using Fault = kube::MemoryApiServer::Fault;
    rig_.api.SetFaults(
        [refuses](const kube::HttpRequest&) { return refuses ? Fault::kRefuse : Fault::kNone; });
  }
  void DeleteJob() {
    ASSERT_TRUE(rig_.client.Delete(kube::kTrainingJobs, {"training", "mnist"}).ok());
  }
  void TellOf(const std::string& message) {
    rig_.Put(kube::kEvents, EventOf(rig_.job, "TrainingJob", "phase", message));
  }

  // Away at the first wait, back at the third, over at the fourth.
  std::function<void(int)> Outage() {
    return [this](int wait) {
      if (wait == 1 || wait == 3) {
        Refuse(wait == 1);
      } else if (wait == 4) {
        SetPhase("Succeeded");
      }
    };
  }

  Rig rig_;
  std::unique_ptr<ActingSleeper> sleeper_;
};

TEST_F(FollowTest, StatusGoesOnWhenTheApiIsBack) {
  Session session = SessionThat(Outage());
  auto flags = Following<StatusFlags>();
  flags.watch = true;
  EXPECT_EQ(ShowStatus(session, flags).value_or(-1), cli::kOk);
  EXPECT_THAT(rig_.printed, HasSubstr("mnist: Running"));
  EXPECT_THAT(rig_.printed, HasSubstr("mnist: Succeeded"));
}

TEST_F(FollowTest, LogsGoOnWhenTheApiIsBack) {
  Session session = SessionThat(Outage());
  auto flags = Following<LogsFlags>();
  flags.follow = true;
  EXPECT_EQ(ShowLogs(session, flags).value_or(-1), cli::kOk);
}

TEST_F(FollowTest, AnApiThatStaysAwayEndsIt) {
  Session session = SessionThat([this](int) { Refuse(true); });
  auto flags = Following<StatusFlags>();
  flags.watch = true;
  const auto begin = rig_.clock.Now();
  EXPECT_TRUE(absl::IsUnavailable(ShowStatus(session, flags).status()));
  EXPECT_GE(rig_.clock.Now() - begin, std::chrono::minutes(5));
}

TEST_F(FollowTest, AnApiThatNeverAnsweredIsNotAwaited) {
  Refuse(true);
  Session session = SessionThat([](int) { FAIL() << "it waits"; });
  auto flags = Following<StatusFlags>();
  flags.watch = true;
  EXPECT_TRUE(absl::IsUnavailable(ShowStatus(session, flags).status()));
}

TEST_F(FollowTest, TheStatusOfADeletedJobIsThatItWasDeleted) {
  Session session = SessionThat([this](int wait) {
    if (wait == 1) {
      DeleteJob();
      rig_.PutJob("Running");  // another of its name
    }
  });
  auto flags = Following<StatusFlags>();
  flags.watch = true;
  const auto shown = ShowStatus(session, flags);
  EXPECT_EQ(std::string(shown.status().message()), "the job mnist was deleted");
  EXPECT_EQ(ExitCodeOf(shown.status()), cli::kBadInput);
}

TEST_F(FollowTest, LogsEndWhenTheJobIsDeleted) {
  Session session = SessionThat([this](int) { DeleteJob(); });
  auto flags = Following<LogsFlags>();
  flags.follow = true;
  EXPECT_EQ(ShowLogs(session, flags).value_or(-1), cli::kOk);
}

TEST_F(FollowTest, LogsDoNotWaitForPodsThatNeverStarted) {
  rig_.PutOwned(kube::kPods, Waiting(ThePod("worker", 0), "", ""));
  Session session = SessionThat([this](int) { SetPhase("Failed"); });
  auto flags = Following<LogsFlags>();
  flags.follow = true;
  EXPECT_EQ(ShowLogs(session, flags).value_or(-1), cli::kOk);
}

TEST_F(FollowTest, EventsEndWithTheLastThatIsToldOfTheJob) {
  TellOf("Running");
  Session session = SessionThat([this](int wait) {
    if (wait == 1) {
      SetPhase("Succeeded");
    } else if (wait == 2) {
      TellOf("Succeeded");
    }
  });
  auto flags = Following<EventsFlags>();
  flags.watch = true;
  EXPECT_EQ(ShowEvents(session, flags).value_or(-1), cli::kOk);
  EXPECT_THAT(rig_.printed, HasSubstr("phase: Running\n"));
  EXPECT_THAT(rig_.printed, EndsWith("phase: Succeeded\n"));
  EXPECT_EQ(std::ranges::count(rig_.printed, '\n'), 2) << rig_.printed;
}

TEST_F(FollowTest, EventsEndWhenTheJobIsDeleted) {
  TellOf("Running");
  Session session = SessionThat([this](int wait) {
    if (wait == 1) {
      DeleteJob();
    }
  });
  auto flags = Following<EventsFlags>();
  flags.watch = true;
  EXPECT_EQ(ShowEvents(session, flags).value_or(-1), cli::kOk);
}

TEST_F(FollowTest, EventsEndWhenTheUserWantsIt) {
  std::function<void()> stop;
  Session session = SessionThat([&stop](int) { stop(); });
  stop = [&session] { session.cancellation.Cancel(); };
  auto flags = Following<EventsFlags>();
  flags.watch = true;
  EXPECT_EQ(ExitCodeOf(ShowEvents(session, flags).status()), cli::kInterrupted);
}

}  // namespace
}  // namespace adamant::kubectl
