#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/services/parameter_server/core/serving/server_fixture.h"

// Stored values are read again, and what is damaged is written anew.
namespace adamant::parameter_server {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ScrubTest : public ServerFixture {
 protected:
  /// Three shards, each a tensor of its own.
  static ParameterServerOptions Options(PersistenceMode mode = PersistenceMode::kDelayed) {
    ParameterServerOptions options = Flat(4, OnWorker());
    options.parameters.push_back({.name = "v", .layer = "l", .shape = {4}});
    options.parameters.push_back({.name = "u", .layer = "l", .shape = {4}});
    options.optimisers.resize(3, OnWorker());
    options.mode = mode;
    return options;
  }

  /// Reads everything once.
  void ScrubAll() {
    const auto copies = Keys("snapshots/").size();  // each with its records beside its shards
    const std::size_t values = 5 + (copies == 0 ? 0 : 3 + copies);
    for (std::size_t value = 0; value < values; ++value) {  // three shards, records of two buckets
      server().Scrub();
    }
    rig_->Run();
    ASSERT_TRUE(rig_->Flush(0).ok());
  }

  std::vector<std::string> Keys(const std::string& prefix) {
    std::vector<std::string> keys;
    EXPECT_TRUE(rig_->store(0)
                    .Scan(prefix,
                          [&](std::string_view key, std::string_view) {
                            keys.emplace_back(key);
                            return true;
                          })
                    .ok());
    return keys;
  }
};

TEST_F(ScrubTest, WhatIsGoodIsReadAndCounted) {
  Create(Options());
  ScrubAll();
  EXPECT_EQ(server().scrubber().totals().damaged, 0u);
  EXPECT_GT(server().scrubber().totals().bytes, sizeof(float) * 3 * 4);
  EXPECT_EQ(server().flusher().totals().bytes, 0u);
}

TEST_F(ScrubTest, ADamagedShardIsWrittenAnewAndSurvivesTheProcess) {
  Create(Options());
  const std::vector<float> ones(4, 1);
  PushOne({.shard = 1, .sequence = 1, .values = ones});
  ASSERT_TRUE(rig_->Flush(0).ok());
  rig_->store(0).Corrupt(LiveShardKey(1));
  ScrubAll();
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
  const std::vector<float> values = Values(1);
  Restart(Options());
  EXPECT_EQ(Values(1), values);
}

TEST_F(ScrubTest, WhileNoFileCanBeOpenedNothingIsCalledDamaged) {
  Create(Options());
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  rig_->store(0).SetOutOfFiles(true);
  ScrubAll();
  ScrubAll();
  rig_->store(0).SetOutOfFiles(false);
  EXPECT_EQ(server().scrubber().totals().damaged, 0u);
  EXPECT_THAT(server().scrubber().damages(), testing::IsEmpty());
}

TEST_F(ScrubTest, AShardThatIsNotWhatWasWrittenIsWrittenAnew) {
  Create(Options());
  std::string stored = rig_->store(0).Get(LiveShardKey(2)).value();
  stored[stored.size() / 2] ^= 1;
  ASSERT_TRUE(rig_->store(0).Write({{.key = LiveShardKey(2), .value = stored}}).ok());
  ScrubAll();
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
  ScrubAll();
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
}

TEST_F(ScrubTest, ADamagedRecordIsWrittenAnew) {
  Create(Options());
  ASSERT_TRUE(rig_->Put(0, "ledger/0", 0, "first")->stored);
  const auto keys = Keys("record/");
  ASSERT_EQ(keys.size(), 1u);
  std::string stored = rig_->store(0).Get(keys[0]).value();
  stored.back() ^= 1;
  ASSERT_TRUE(rig_->store(0).Write({{.key = keys[0], .value = stored}}).ok());
  ScrubAll();
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
  Restart(Options());
  EXPECT_EQ(server().records().Get("ledger/0").record.value, "first");
}

TEST_F(ScrubTest, WhatIsNotHeldHereIsLeftAlone) {
  Create(Options());
  for (Configuration& line : rig_->map) {
    ++line.version;
    line.primary = {.slot = 9, .incarnation = 1};
    line.replicas = {line.primary};
  }
  rig_->Publish();
  rig_->store(0).Corrupt(LiveShardKey(1));
  server().Scrub();
  EXPECT_EQ(server().scrubber().totals().damaged, 0u);
  EXPECT_EQ(server().scrubber().totals().bytes, 0u);
}

TEST_F(ScrubTest, AValueASecondUnlessAPassWouldTakeLongerThanItMay) {
  Create(Options());
  server().Scrub();
  EXPECT_EQ(server().scrubber().DueAt(), rig_->clock.Now() + seconds(1));
  ParameterServerOptions options = Options();
  options.scrub.pass = seconds(1);
  Restart(options);
  server().Scrub();
  EXPECT_EQ(server().scrubber().DueAt(), rig_->clock.Now() + milliseconds(200));
}

TEST_F(ScrubTest, AfterDamageAllElseIsReadAtOnceAndOnce) {
  Create(Options());
  rig_->store(0).Corrupt(LiveShardKey(0));
  server().Scrub();
  EXPECT_THAT(server().scrubber().damages(),
              testing::ElementsAre(
                  "memory: checksum mismatch; what is damaged is written anew from memory"));
  for (int value = 0; value < 5; ++value) {
    EXPECT_EQ(server().scrubber().DueAt(), rig_->clock.Now());
    server().Scrub();  // finds it again, as nothing is flushed
  }
  EXPECT_EQ(server().scrubber().DueAt(), rig_->clock.Now() + seconds(1));
  EXPECT_EQ(server().scrubber().totals().damaged, 2u);
}

TEST_F(ScrubTest, WithoutPersistenceThereIsNothingToReadButCheckpoints) {
  Create(Options(PersistenceMode::kNone));
  ScrubAll();
  EXPECT_EQ(server().scrubber().totals().bytes, 0u);
  EXPECT_EQ(server().scrubber().totals().damaged, 0u);
  EXPECT_EQ(server().scrubber().DueAt(), rig_->clock.Now() + seconds(1));
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  for (int value = 0; value < 5; ++value) {  // three shards, the records of two buckets
    server().Scrub();
  }
  EXPECT_EQ(server().scrubber().totals().bytes, sizeof(float) * 3 * 4);
}

TEST_F(ScrubTest, ADamagedValueOfACheckpointIsWrittenAnewWhileMemoryHasIt) {
  Create(Options());
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  const auto keys = Keys("snapshot/");
  ASSERT_EQ(keys.size(), 3u);
  rig_->store(0).Corrupt(keys[0]);
  ScrubAll();
  ScrubAll();
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
  EXPECT_THAT(server().scrubber().damages(),
              testing::ElementsAre(testing::HasSubstr("is written anew")));
  EXPECT_TRUE(rig_->store(0).Get(keys[0]).ok());
}

TEST_F(ScrubTest, OfACheckpointThatMemoryHasNoLongerDamageIsToldOnce) {
  Create(Options());
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  const std::vector<float> ones(4, 1);
  for (ShardId shard = 0; shard < 3; ++shard) {
    PushOne({.shard = shard, .sequence = 1, .values = ones});
  }
  ASSERT_TRUE(rig_->Flush(0).ok());
  rig_->store(0).Corrupt(Keys("snapshot/")[0]);
  for (int pass = 0; pass < 5; ++pass) {
    ScrubAll();
  }
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
  EXPECT_THAT(server().scrubber().damages(),
              testing::ElementsAre(testing::HasSubstr("of checkpoint 1 cannot be read")));
  EXPECT_TRUE(rig_->storage_error(0).ok()) << rig_->storage_error(0);
}

TEST_F(ScrubTest, ACheckpointIsReadWhereItsBucketHasGoneToo) {
  Create(Options());
  ASSERT_TRUE(server().TakeSnapshot({.snapshot = 1}).ok());
  for (Configuration& line : rig_->map) {
    ++line.version;
    line.primary = {.slot = 9, .incarnation = 1};
    line.replicas = {line.primary};
  }
  rig_->Publish();
  rig_->store(0).Corrupt(Keys("snapshot/")[0]);
  for (int value = 0; value < 10; ++value) {
    server().Scrub();
  }
  rig_->Run();
  EXPECT_EQ(server().scrubber().totals().damaged, 1u);
}

}  // namespace
}  // namespace adamant::parameter_server
