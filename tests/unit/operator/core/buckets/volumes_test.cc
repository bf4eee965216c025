#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;

JobSettings JobWithCopies(std::uint32_t copies) {
  JobSettings settings = SmallJob();
  settings.parameter_servers = 3;
  settings.buckets = 3;
  settings.copies = copies;
  return settings;
}

// Three servers hold three buckets, and one node after the other is lost.
class VolumesTest : public testing::Test {
 protected:
  void Begin(std::uint32_t copies) { Begin(JobWithCopies(copies)); }
  void Begin(const JobSettings& settings) {
    job_ = std::make_unique<Harness>(settings);
    job_->Begin();
    job_->JoinAll();
    AddLearners();
  }

  // Primaries add the learners that they are told of, until there are none.
  void AddLearners() {
    for (bool any = true; any;) {
      any = false;
      for (std::uint32_t i = 0; i < 3; ++i) {
        const Configuration configuration = job_->state().buckets[i];
        if (configuration.learner) {
          Propose(configuration.primary, i, Proposal::Kind::kAdd, *configuration.learner);
          any = true;
        }
      }
    }
  }

  void Propose(ServerId by, BucketId bucket, Proposal::Kind kind, ServerId subject) {
    const Proposal proposal{.bucket = bucket,
                            .configuration_version = job_->state().buckets[bucket].version,
                            .kind = kind,
                            .proposer = by,
                            .subject = subject,
                            .last_lsn = 1};
    job_->Tell({Role::kParameterServer, by.slot}, Proposals{{proposal}});
  }

  Harness::Actions LoseNodeOf(SlotId id, bool proved = false) {
    return job_->Handle(ProcessExited{.id = id,
                                      .generation = job_->GenerationOf(id),
                                      .how = "is given up",
                                      .proved = proved,
                                      .cause = LossCause::kNodeLost});
  }

  Harness::Actions DeleteVolumeOf(SlotId id) {
    return job_->Handle(ProcessExited{.id = id,
                                      .generation = job_->GenerationOf(id),
                                      .how = "begins anew on another volume",
                                      .proved = false,
                                      .cause = LossCause::kNodeLost,
                                      .volume_deleted = true});
  }

  // The others take over what the slot was primary of, and drop it.
  void LeaveOut(std::uint32_t slot) {
    const ServerId gone = job_->ServerIdOf(slot);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const Configuration configuration = job_->state().buckets[i];
      for (const ServerId& replica : configuration.replicas) {
        if (configuration.primary == gone && replica != gone) {
          Propose(replica, i, Proposal::Kind::kPromote, replica);
        } else if (configuration.primary != gone && replica == gone) {
          Propose(configuration.primary, i, Proposal::Kind::kDrop, gone);
        }
      }
    }
    job_->Pass(seconds(1), {{Role::kParameterServer, slot}});
    for (std::uint32_t server = 0; server < 3; ++server) {
      if (server != slot) {
        job_->Serve(server);
      }
    }
  }

  [[nodiscard]] std::uint64_t VolumeOf(SlotId id) const {
    return job_->controller().processes().VolumeOf(id);
  }
  [[nodiscard]] bool HasAllCopies() const { return job_->controller().HasAllCopies(); }

  std::unique_ptr<Harness> job_;
};

TEST_F(VolumesTest, AProcessThatEndsOrIsDeletedFindsItsVolumeAgain) {
  Begin(2);
  EXPECT_EQ(VolumeOf(kServer0), 1u);
  job_->Exit(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 1u);
  job_->Handle(ProcessExited{.id = kServer1,
                             .generation = 1,
                             .how = "is gone",
                             .proved = false,
                             .cause = LossCause::kDisruption});
  EXPECT_EQ(VolumeOf(kServer1), 1u);
}

TEST_F(VolumesTest, OneThatIsLostWithItsNodeBeginsOnANewVolumeThoughItsLossIsToldAgain) {
  Begin(2);
  LoseNodeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 2u);
  const ProcessExited again{.id = kServer0,
                            .generation = 1,
                            .how = "is given up",
                            .proved = false,
                            .cause = LossCause::kNodeLost};
  job_->Handle(again);
  EXPECT_EQ(job_->GenerationOf(kServer0), 2u);
  job_->Handle(again);
  EXPECT_EQ(VolumeOf(kServer0), 2u);
  job_->RestartController({.running = job_->controller().Wanted()});
  EXPECT_EQ(VolumeOf(kServer0), 2u) << "it is stored";
}

TEST_F(VolumesTest, OneThatIsToRunElsewhereGetsAnotherVolumeWhateverTheRulesSayOfDisruptions) {
  JobSettings settings = JobWithCopies(2);
  settings.failure_rules = {{.cause = LossCause::kDisruption, .action = LossAction::kFail}};
  Begin(settings);
  EXPECT_TRUE(job_->controller().CanSpareAServer());
  job_->Handle(ProcessExited{.id = kServer0,
                             .generation = 1,
                             .how = "moves to another node",
                             .cause = LossCause::kDisruption,
                             .moves = true});
  EXPECT_EQ(VolumeOf(kServer0), 2u);
  EXPECT_EQ(job_->GenerationOf(kServer0), 2u);
  EXPECT_EQ(job_->state().phase, Phase::kRunning);
  EXPECT_FALSE(job_->controller().CanSpareAServer()) << "one is away";
}

TEST_F(VolumesTest, OneThatWasSilentBeforeItsNodeWasLostDoesSoToo) {
  Begin(2);
  job_->Pass(seconds(12), {kServer0});
  ASSERT_EQ(VolumeOf(kServer0), 1u);
  LoseNodeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 2u);
  job_->Pass(seconds(2), {kServer0});
  EXPECT_EQ(job_->GenerationOf(kServer0), 2u);
}

TEST_F(VolumesTest, OtherRolesHaveNone) {
  Begin(2);
  LoseNodeOf(kWorker0);
  EXPECT_EQ(VolumeOf(kWorker0), 1u);
}

// An empty disk in its place would bring the bucket back without what was acknowledged.
TEST_F(VolumesTest, TheOnlyCopyIsWaitedFor) {
  Begin(1);
  LoseNodeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 1u);
}

TEST_F(VolumesTest, OfCopiesThatAreLostTogetherTheLastOneIsWaitedFor) {
  Begin(2);
  LoseNodeOf(kServer0);
  LoseNodeOf(kServer1);
  EXPECT_EQ(VolumeOf(kServer0), 2u) << "server 1 was there then";
  EXPECT_EQ(VolumeOf(kServer1), 1u) << "a bucket is on these two only";
}

// The other copy ends before it can drop the lost one, whose end nothing would prove then.
TEST_F(VolumesTest, ASuspendedJobLeavesNoVolume) {
  Begin(2);
  job_->Handle(SuspendRequested{.reason = "by the user", .at_once = true});
  ASSERT_EQ(job_->state().phase, Phase::kSuspended);
  LoseNodeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 1u);
}

// The start is given up before the other copy has dropped the one whose volume was left; nothing
// will prove that one's end.
TEST_F(VolumesTest, OneWhoseVolumeWasLeftIsNotWaitedForWhenTheOthersHaveEnded) {
  Begin(2);
  LoseNodeOf(kServer0);
  ASSERT_EQ(VolumeOf(kServer0), 2u);
  job_->Handle(SuspendRequested{.reason = "by the user", .at_once = true});
  ASSERT_EQ(job_->state().phase, Phase::kSuspended);
  const std::uint64_t left = job_->ServerIdOf(0).incarnation;
  job_->RestartController();
  for (std::size_t i = 0; i < job_->state().slots.size(); ++i) {
    const SlotId id = SlotAt(JobWithCopies(2), i);
    job_->Join(id, ToString(id) + " again");
  }
  ASSERT_GT(job_->ServerIdOf(0).incarnation, left);
  for (const std::uint32_t server : {1U, 2U}) {
    job_->ReportDisk(server);
  }
  const auto named = [&] {
    return std::ranges::count_if(job_->state().buckets, [&](const Configuration& bucket) {
      return bucket.Has({.slot = 0, .incarnation = left});
    });
  };
  EXPECT_GT(named(), 0);
  job_->Tell(kServer0, StoredBuckets{});
  EXPECT_EQ(named(), 0);
}

// Who opens the disk proves that the one before has ended, which alone lets the bucket go on.
TEST_F(VolumesTest, ACopyThatMayNotBeLeftOutIsWaitedFor) {
  JobSettings settings = JobWithCopies(2);
  settings.min_in_sync = 2;
  Begin(settings);
  LoseNodeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 1u);
}

TEST_F(VolumesTest, OneThatHasNotBegunToServeYetIsWaitedForToo) {
  job_ = std::make_unique<Harness>(JobWithCopies(2));
  job_->Begin();
  for (std::size_t i = 0; i < job_->state().slots.size(); ++i) {
    const SlotId id = SlotAt(JobWithCopies(2), i);
    job_->Join(id, ToString(id));
  }
  for (const std::uint32_t server : {0U, 1U, 2U}) {
    job_->ReportDisk(server);
  }
  ASSERT_EQ(job_->state().buckets.size(), 3u);
  LoseNodeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 1u);
}

TEST_F(VolumesTest, AProcessThatComesBackFromALostNodeIsRefused) {
  Begin(2);
  LoseNodeOf(kServer0);
  const auto refused = Sent<Refused>(job_->Join(kServer0, ToString(kServer0), 1));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].second.reason,
            "parameter-server-0 incarnation 1 was given up; the slot is at 1");
  job_->Join(kServer0, "server-0 elsewhere");
  EXPECT_EQ(Sent<Refused>(job_->Join(kServer0, ToString(kServer0), 1)).size(), 1u);
}

TEST_F(VolumesTest, OneWhoseVolumeWasDeletedLearnsItsBucketsOnANewOne) {
  Begin(2);
  job_->Exit(kServer0);
  job_->Pass(seconds(2), {kServer0});
  ASSERT_EQ(job_->GenerationOf(kServer0), 2u);
  DeleteVolumeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 2u);
  LeaveOut(0);
  job_->Join(kServer0, "server-0 anew");
  job_->Tell(kServer0, StoredBuckets{});
  AddLearners();
  EXPECT_TRUE(HasAllCopies());
  EXPECT_EQ(job_->state().phase, Phase::kRunning);
}

// Nobody can bring it back: to wait for it would be to wait for ever.
TEST_F(VolumesTest, TheOnlyCopyIsLostWithADeletedVolumeAndTheJobSaysWhich) {
  Begin(1);
  job_->Exit(kServer0);
  job_->Pass(seconds(2), {kServer0});
  DeleteVolumeOf(kServer0);
  EXPECT_EQ(VolumeOf(kServer0), 2u);
  job_->Pass(seconds(5), {kServer0});
  job_->Join(kServer0, "server-0 anew");
  job_->Tell(kServer0, StoredBuckets{});
  EXPECT_EQ(job_->state().phase, Phase::kFailed);
  EXPECT_THAT(job_->state().message, testing::HasSubstr("is lost"));
  EXPECT_THAT(job_->state().message, testing::HasSubstr("parameter-server-0: nothing is stored"));
}

// Who was not proved to be dead may have what was acknowledged: an empty volume is no proof.
TEST_F(VolumesTest, ADeletedVolumeProvesNobodysDeath) {
  Begin(1);
  DeleteVolumeOf(kServer0);
  job_->Pass(seconds(5), {kServer0});
  job_->Join(kServer0, "server-0 anew");
  job_->Tell(kServer0, StoredBuckets{});
  job_->Pass(seconds(100));
  EXPECT_EQ(job_->state().phase, Phase::kRunning);
  EXPECT_EQ(job_->controller().Report().bucket_summary.states.count("Ready"), 1u);
  EXPECT_NE(job_->controller().Report().bucket_summary.states.at("Ready"), 3u);
}

TEST_F(VolumesTest, AnEarlierVolumeIsNeededUntilEveryBucketHasItsCopiesAgain) {
  Begin(2);
  EXPECT_TRUE(HasAllCopies());
  LoseNodeOf(kServer0);
  EXPECT_FALSE(HasAllCopies()) << "configurations still name who is lost";
  LeaveOut(0);
  EXPECT_FALSE(HasAllCopies());
  job_->Join(kServer0, "server-0 elsewhere");
  job_->Tell(kServer0, StoredBuckets{});
  job_->Tell(kServer0, Heartbeat{});
  EXPECT_FALSE(HasAllCopies());
  AddLearners();
  EXPECT_TRUE(HasAllCopies());
}

}  // namespace
}  // namespace adamant::controller
