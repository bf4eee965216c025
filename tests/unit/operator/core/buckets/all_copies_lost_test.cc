#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/buckets/replication_fixture.h"

namespace adamant::controller {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::vector<std::string> RestoredTexts(const Harness::Actions& actions) {
  std::vector<std::string> texts;
  for (const Note& note : Pick<Note>(actions)) {
    if (note.kind == Note::Kind::kRestored) {
      texts.push_back(note.text);
    }
  }
  return texts;
}

class AllCopiesLostTest : public ReplicationTest {};

TEST_F(AllCopiesLostTest, AllLostBucketsComeBackFromTheBetterDiskAndTheRollbackIsTold) {
  const ServerId first = configuration(0).primary;
  const ServerId second = Secondary(0);
  TellOfHundredUpdates(first.slot);
  job_.Exit({Role::kParameterServer, first.slot});
  job_.Exit({Role::kParameterServer, second.slot});
  EXPECT_EQ(StateOf(0), "Restoring");
  const ConfigurationVersion configuration_version = configuration(0).version;
  const auto disk = [&](std::uint64_t previous, std::uint64_t updates) {
    StoredBuckets stored{.previous_incarnation = previous, .buckets = {}};
    stored.buckets.push_back({.bucket = 0, .generation = 1, .updates = updates, .complete = true});
    return stored;
  };
  job_.Join({Role::kParameterServer, first.slot}, "first");
  job_.Tell({Role::kParameterServer, first.slot}, disk(first.incarnation, 90));
  EXPECT_EQ(configuration(0).version, configuration_version);
  job_.Join({Role::kParameterServer, second.slot}, "second");
  job_.Tell({Role::kParameterServer, second.slot}, disk(second.incarnation, 95));
  EXPECT_EQ(configuration(0).version, configuration_version + 1);
  EXPECT_EQ(configuration(0).generation, 2u);
  EXPECT_EQ(configuration(0).primary, job_.ServerIdOf(second.slot));
  EXPECT_EQ(StateOf(0), "Restoring");
  const auto notes = Pick<Note>(job_.Serve(second.slot, 95));
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes[0].kind, Note::Kind::kRestored);
  EXPECT_THAT(notes[0].text, HasSubstr("5 updates rolled back"));
  EXPECT_EQ(job_.controller().Report().buckets[0].rolled_back, 5u);
  EXPECT_GE(job_.controller().Report().last_failover->restores, 1u);
}

TEST_F(AllCopiesLostTest, BucketsThatComeBackFromDiskWholeAreToldTogether) {
  const ServerId first = configuration(0).primary;
  const ServerId second = Secondary(0);
  job_.Exit({Role::kParameterServer, first.slot});
  job_.Exit({Role::kParameterServer, second.slot});
  for (const ServerId& server_id : {first, second}) {
    const SlotId id{Role::kParameterServer, server_id.slot};
    StoredBuckets stored{.previous_incarnation = server_id.incarnation, .buckets = {}};
    for (BucketId bucket = 0; bucket < job_.state().buckets.size(); ++bucket) {
      stored.buckets.push_back({.bucket = bucket, .generation = 1, .complete = true});
    }
    job_.Join(id, ToString(id));
    job_.Tell(id, stored);
  }
  Harness::Actions actions = job_.Serve(first.slot);
  Harness::Append(actions, job_.Serve(second.slot));
  EXPECT_THAT(
      RestoredTexts(actions),
      ElementsAre(AllOf(HasSubstr("parameters were read back from disk ("),
                        HasSubstr("buckets) as they were flushed last; what was applied after "
                                  "that, if anything, is missing"))));
}

TEST_F(AllCopiesLostTest, AfterAnOrderlyStopNothingIsMissing) {
  job_.Handle(SuspendRequested{.reason = "Ctrl-C"});
  job_.Pass(std::chrono::minutes(1));
  ASSERT_EQ(job_.state().phase, Phase::kSuspended);
  Harness::Actions actions = job_.RestartController({.others = false});
  Harness::Append(actions, job_.JoinAll("resumed"));
  EXPECT_THAT(RestoredTexts(actions), ElementsAre(EndsWith("no update is known to be lost")));
}

/// A net whose parameters are all in bucket 1.
class SmallNetTest : public ReplicationTest {
 protected:
  SmallNetTest() : ReplicationTest(SmallNet()) {}

  static JobSettings SmallNet() {
    JobSettings settings = ReplicatedJob();
    settings.bucket_bytes = {0, 4, 0};
    return settings;
  }
};

TEST_F(SmallNetTest, OfBucketsThatCameBackThoseAreToldThatHoldParameters) {
  std::vector<ServerId> servers;
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    servers.push_back(job_.ServerIdOf(slot));
    job_.Exit({Role::kParameterServer, slot});
  }
  for (const ServerId& server_id : servers) {
    const SlotId id{Role::kParameterServer, server_id.slot};
    StoredBuckets stored{.previous_incarnation = server_id.incarnation, .buckets = {}};
    for (BucketId bucket = 0; bucket < job_.state().buckets.size(); ++bucket) {
      stored.buckets.push_back({.bucket = bucket, .generation = 1, .complete = true});
    }
    job_.Join(id, ToString(id));
    job_.Tell(id, stored);
  }
  Harness::Actions actions;
  for (const ServerId& server_id : servers) {
    Harness::Append(actions, job_.Serve(server_id.slot));
  }
  EXPECT_THAT(RestoredTexts(actions),
              ElementsAre("parameters were read back from disk (the 1 bucket that holds "
                          "parameters, of 3 in all) as they were flushed last; what was applied "
                          "after that, if anything, is missing and not all counted, unless a "
                          "worker that lives sends it again"));
}

TEST_F(AllCopiesLostTest, BucketsThatComeBackTwiceBeforeAllAreBackAreCountedOnce) {
  const ServerId first = configuration(0).primary;
  const ServerId second = Secondary(0);
  std::size_t lost = 0;
  for (const ServerId& server_id : {first, second}) {
    job_.Exit({Role::kParameterServer, server_id.slot});
  }
  for (BucketId bucket = 0; bucket < job_.state().buckets.size(); ++bucket) {
    lost += StateOf(bucket) == "Restoring" ? 1 : 0;
  }
  const auto come_back = [&](std::uint32_t slot) {
    const SlotId id{Role::kParameterServer, slot};
    StoredBuckets stored{.previous_incarnation = job_.ServerIdOf(slot).incarnation, .buckets = {}};
    for (BucketId bucket = 0; bucket < job_.state().buckets.size(); ++bucket) {
      stored.buckets.push_back(
          {.bucket = bucket, .generation = configuration(bucket).generation, .complete = true});
    }
    job_.Join(id, ToString(id) + " of " + std::to_string(job_.ServerIdOf(slot).incarnation));
    job_.Tell(id, stored);
  };
  come_back(first.slot);
  come_back(second.slot);
  job_.Serve(first.slot);
  job_.Exit({Role::kParameterServer, first.slot});
  come_back(first.slot);
  Harness::Actions actions = job_.Serve(first.slot);
  Harness::Append(actions, job_.Serve(second.slot));
  EXPECT_THAT(RestoredTexts(actions),
              ElementsAre(HasSubstr("read back from disk (" + std::to_string(lost) + " of ")));
}

TEST_F(AllCopiesLostTest, WhatIsToldOfAllBucketsThatCameBackDoesNotDenyWhatSomeLost) {
  const ServerId first = configuration(0).primary;
  TellOfHundredUpdates(first.slot);
  std::vector<ServerId> servers;
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    servers.push_back(job_.ServerIdOf(slot));
    job_.Exit({Role::kParameterServer, slot});
  }
  for (const ServerId& server_id : servers) {
    const SlotId id{Role::kParameterServer, server_id.slot};
    StoredBuckets stored{.previous_incarnation = server_id.incarnation, .buckets = {}};
    for (BucketId bucket = 0; bucket < job_.state().buckets.size(); ++bucket) {
      stored.buckets.push_back(
          {.bucket = bucket, .generation = 1, .updates = 99, .complete = true});
    }
    job_.Join(id, ToString(id));
    job_.Tell(id, stored);
  }
  Harness::Actions actions;
  for (const ServerId& server_id : servers) {
    Harness::Append(actions, job_.Serve(server_id.slot, 99));
  }
  EXPECT_THAT(
      RestoredTexts(actions),
      ElementsAre(
          AllOf(HasSubstr("bucket 0 restored from "), HasSubstr(": 1 update rolled back")),
          AllOf(HasSubstr(" buckets) as they were flushed last: 1 update of 1 bucket was rolled "
                          "back, as was heard; "),
                testing::Not(HasSubstr("known to be lost")))));
}

}  // namespace
}  // namespace adamant::controller
