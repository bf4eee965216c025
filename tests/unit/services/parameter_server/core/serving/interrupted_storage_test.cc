#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/storage/memory_store.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/interrupted_store.h"

// What happens to a bucket while the disk is at work for it.
namespace adamant::parameter_server {
namespace {

/// A server that is asked to learn its only bucket, of one shard; the test is the primary.
class InterruptedStorageTest : public ::testing::Test, protected Driver {
 protected:
  static constexpr ServerId kPrimary{.slot = 1, .incarnation = 1};
  static constexpr ConfigurationVersion kVersion = 4;

  InterruptedStorageTest() { EXPECT_TRUE(core_.ReadStored().ok()); }

  void Deliver(decltype(PeerMessage::kind) kind) {
    core_.OnPeerMessage(kPrimary,
                        {.bucket = 0, .configuration_version = kVersion, .kind = std::move(kind)});
  }

  /// All of a copy.
  void Copy(std::uint64_t copy) {
    Deliver(CopyBegin{.copy = copy, .base = 0, .generation = 1, .parts = 1});
    std::string stored = EncodeShard(
        {.job_uid = 7, .shard = 0, .values = 4},
        {.generation = 1, .version = copy, .values = std::vector<float>(4, 1), .state = {}});
    SealShard(stored);
    Deliver(CopyPart{
        .copy = copy,
        .content = CopiedShard{.shard = 0,
                               .stored = std::make_shared<const std::string>(std::move(stored))}});
  }

  // Driver.
  void SendToPeer(const ServerId& /*to*/, PeerMessage message) override {
    if (const auto* ack = std::get_if<CopyAck>(&message.kind)) {
      acknowledged_.push_back(ack->copy);
    }
  }
  void Propose(const Proposal& /*proposal*/) override {}
  void Report(const BucketReport& /*report*/) override {}
  void WantApply() override {}
  void WantStorage() override {}

  FakeClock clock_;
  storage::MemoryStore memory_;
  fakes::InterruptedStore store_{memory_};
  std::vector<std::uint64_t> acknowledged_;  ///< copies that count
  ParameterServer core_{{.job_uid = 7,
                         .self = {.slot = 0, .incarnation = 1},
                         .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
                         .optimisers = {{.location = OptimiserLocation::kWorker}}},
                        store_,
                        clock_,
                        *this};
};

TEST_F(InterruptedStorageTest, ACopyCountsWhenItIsOnDiskItself) {
  Copy(1);
  // The first is given up, all of the next has come.
  store_.InterruptNextFlush([this] { Copy(2); });
  ASSERT_TRUE(core_.DoStorage().ok());
  EXPECT_TRUE(acknowledged_.empty());
  ASSERT_TRUE(core_.DoStorage().ok());
  EXPECT_EQ(acknowledged_, std::vector<std::uint64_t>{2});
}

TEST_F(InterruptedStorageTest, ABucketThatWasTakenAwayIsNotInstalled) {
  Copy(1);
  store_.InterruptNextFlush([this] {
    core_.SetConfigurations(
        std::vector<Configuration>{{.version = kVersion + 1, .generation = 1, .primary = kPrimary}},
        {});
  });
  ASSERT_TRUE(core_.DoStorage().ok());
  ASSERT_TRUE(core_.DoStorage().ok());
  EXPECT_TRUE(acknowledged_.empty());
}

// What is stored would be erased, and the replica that the learner becomes goes on from its memory.
TEST_F(InterruptedStorageTest, ALateBeginningOfACopyChangesNothing) {
  Copy(1);
  ASSERT_TRUE(core_.DoStorage().ok());
  ASSERT_EQ(acknowledged_, std::vector<std::uint64_t>{1});
  const CopyBegin begin{.copy = 1, .base = 0, .generation = 1, .parts = 1};
  const ServerId replaced{.slot = 2, .incarnation = 1};  // its first copy has the same number
  core_.OnPeerMessage(replaced,
                      {.bucket = 0, .configuration_version = kVersion - 1, .kind = begin});
  Deliver(begin);
  ASSERT_TRUE(core_.DoStorage().ok());
  EXPECT_EQ(MarkedBuckets(memory_).value(), std::vector<BucketId>{0});
}

TEST_F(InterruptedStorageTest, AFlushKeepsTheLogOfRecordsThatAreNotStoredYet) {
  ParameterServerOptions options{.job_uid = 7,
                                 .self = {.slot = 0, .incarnation = 1},
                                 .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
                                 .optimisers = {{.location = OptimiserLocation::kWorker}}};
  options.mode = PersistenceMode::kWal;
  const ServerId self = options.self;
  std::vector<Configuration> map{
      {.version = 1, .generation = 1, .primary = self, .replicas = {self}, .created = true}};
  {
    ParameterServer server(options, store_, clock_, *this);
    ASSERT_TRUE(server.ReadStored().ok());
    map[0].created = false;
    server.SetConfigurations(map, {});
    ASSERT_TRUE(server.DoStorage().ok());
    map[0].created = true;
    server.SetConfigurations(map, {});
    const std::vector<float> ones(4, 1);
    server.Submit({.writer = {.slot = 0, .incarnation = 1},
                   .updates = {{.configuration_version = 1, .sequence = 1, .values = ones}}},
                  [](const std::vector<ShardAck>&) {});
    ASSERT_TRUE(server.records().Put("ledger/0", 0, "value", [](const RecordAnswer&) {}).ok());
    ASSERT_TRUE(server.DoStorage().ok());  // both are logged, and the record is not written yet
    ASSERT_TRUE(server.Flush().ok());
  }
  ParameterServer later(options, store_, clock_, *this);
  ASSERT_TRUE(later.ReadStored().ok());
  map[0].version = 2;
  map[0].generation = 2;
  later.SetConfigurations(map, {});
  ASSERT_TRUE(later.DoStorage().ok());
  EXPECT_EQ(later.records().Get("ledger/0").record.version, 1u);
}

// The update behind the record is written and its shard is clean, but the flush cannot say so.
TEST_F(InterruptedStorageTest, WhatAFlushWroteBehindAWaitingRecordIsToldByTheNext) {
  const ParameterServerOptions options{.job_uid = 7,
                                       .self = {.slot = 0, .incarnation = 1},
                                       .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
                                       .optimisers = {{.location = OptimiserLocation::kWorker}},
                                       .flush = {.interval = std::chrono::hours(1)}};
  ParameterServer server(options, store_, clock_, *this);
  ASSERT_TRUE(server.ReadStored().ok());
  std::vector<Configuration> map{{.version = 1,
                                  .generation = 1,
                                  .primary = options.self,
                                  .replicas = {options.self},
                                  .created = false}};
  server.SetConfigurations(map, {});
  ASSERT_TRUE(server.DoStorage().ok());
  map[0].created = true;
  server.SetConfigurations(map, {});
  ASSERT_TRUE(server.DoStorage().ok());
  const WorkerId writer{.slot = 0, .incarnation = 1};
  const std::vector<float> ones(4, 1);
  ASSERT_TRUE(server.records().Put("ledger/0", 0, "value", [](const RecordAnswer&) {}).ok());
  server.Submit(
      {.writer = writer, .updates = {{.configuration_version = 1, .sequence = 1, .values = ones}}},
      [](const std::vector<ShardAck>& acks) {
        EXPECT_EQ(acks.at(0).outcome, PushOutcome::kApplied);
      });
  ASSERT_TRUE(server.DoStorage().ok());  // both are committed, and the record is not written yet
  server.ApplyCommitted();
  ASSERT_TRUE(server.Flush().ok());
  const std::vector<ShardId> shards{0};
  EXPECT_EQ(server.RequestFlush(writer, shards).at(0).sequence, 0u);
  ASSERT_TRUE(server.DoStorage().ok());
  ASSERT_LE(server.flusher().DueAt(), clock_.Now()) << "the worker waits for it";
  ASSERT_TRUE(server.Flush().ok());
  EXPECT_EQ(server.RequestFlush(writer, shards).at(0).sequence, 1u);
  EXPECT_EQ(server.flusher().DueAt(), Clock::TimePoint::max());
}

// Shards that are gone when their turn comes are not written: what was logged of them must stay.
TEST_F(InterruptedStorageTest, AFlushErasesNothingOfABucketThatWasTakenAwayMeanwhile) {
  ParameterServerOptions options{.job_uid = 7,
                                 .self = {.slot = 0, .incarnation = 1},
                                 .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
                                 .optimisers = {{.location = OptimiserLocation::kWorker}}};
  options.mode = PersistenceMode::kWal;
  ParameterServer server(options, store_, clock_, *this);
  ASSERT_TRUE(server.ReadStored().ok());
  std::vector<Configuration> map{
      {.version = 1, .generation = 1, .primary = options.self, .replicas = {options.self}}};
  for (const bool created : {false, true}) {
    map[0].created = created;
    server.SetConfigurations(map, {});
    ASSERT_TRUE(server.DoStorage().ok());
  }
  const std::vector<float> ones(4, 1);
  server.Submit({.writer = {.slot = 0, .incarnation = 1},
                 .updates = {{.configuration_version = 1, .sequence = 1, .values = ones}}},
                [](const std::vector<ShardAck>&) {});
  ASSERT_TRUE(server.DoStorage().ok());
  store_.TakeErasedRanges();
  store_.InterruptNextFlush([&] {
    map[0] = {.version = 2, .generation = 2, .primary = kPrimary, .replicas = {kPrimary}};
    server.SetConfigurations(map, {});
  });
  ASSERT_TRUE(server.Flush().ok());
  EXPECT_TRUE(store_.TakeErasedRanges().empty());
}

// A store may have to pass by all that ever was in a range that is erased.
TEST_F(InterruptedStorageTest, WhatIsErasedOfTheLogIsNotErasedAgain) {
  for (const PersistenceMode mode : {PersistenceMode::kDelayed, PersistenceMode::kWal}) {
    storage::MemoryStore memory;
    fakes::InterruptedStore store(memory);
    ParameterServerOptions options{.job_uid = 7,
                                   .self = {.slot = 0, .incarnation = 1},
                                   .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
                                   .optimisers = {{.location = OptimiserLocation::kWorker}}};
    options.mode = mode;
    ParameterServer server(options, store, clock_, *this);
    ASSERT_TRUE(server.ReadStored().ok());
    const ServerId self = options.self;
    for (const bool created : {false, true}) {
      server.SetConfigurations(std::vector<Configuration>{{.version = 1,
                                                           .generation = 1,
                                                           .primary = self,
                                                           .replicas = {self},
                                                           .created = created}},
                               {});
      ASSERT_TRUE(server.DoStorage().ok());
    }
    store.TakeErasedRanges();
    std::string last;
    int ranges = 0;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const std::vector<float> ones(4, 1);
      server.Submit({.writer = {.slot = 0, .incarnation = 1},
                     .updates = {{.configuration_version = 1, .sequence = i + 1, .values = ones}}},
                    [](const std::vector<ShardAck>&) {});
      ASSERT_TRUE(server.records().Put("ledger/0", i, "value", [](const RecordAnswer&) {}).ok());
      ASSERT_TRUE(server.DoStorage().ok());
      ASSERT_TRUE(server.DoStorage().ok());
      ASSERT_TRUE(server.Flush().ok());
      for (const storage::Change& range : store.TakeErasedRanges()) {
        EXPECT_GE(range.key, last);
        last = range.end;
        ++ranges;
      }
    }
    EXPECT_EQ(ranges, 5);
    ParameterServer later(options, store, clock_, *this);
    ASSERT_TRUE(later.ReadStored().ok());
  }
}

// A slow disk: the next put of the record is committed before the first is written. Who was told of
// the other's version could overwrite what it has never seen.
TEST_F(InterruptedStorageTest, APutIsAnsweredWithItsOwnVersion) {
  const ParameterServerOptions options = {.job_uid = 7,
                                          .self = {.slot = 0, .incarnation = 1},
                                          .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
                                          .optimisers = {{.location = OptimiserLocation::kWorker}}};
  storage::MemoryStore store;
  ParameterServer server(options, store, clock_, *this);
  ASSERT_TRUE(server.ReadStored().ok());
  for (const bool created : {false, true}) {
    server.SetConfigurations(std::vector<Configuration>{{.version = 1,
                                                         .generation = 1,
                                                         .primary = options.self,
                                                         .replicas = {options.self},
                                                         .created = created}},
                             {});
    ASSERT_TRUE(server.DoStorage().ok());
  }
  std::vector<std::uint64_t> versions;
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(server.records()
                    .Put("ledger/0",
                         i,
                         "value",
                         [&](const RecordAnswer& answer) {
                           EXPECT_TRUE(answer.stored);
                           versions.push_back(answer.record.version);
                         })
                    .ok());
    ASSERT_TRUE(server.DoStorage().ok());  // logged, and so committed
  }
  ASSERT_TRUE(server.DoStorage().ok());
  EXPECT_EQ(versions, (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace adamant::parameter_server
