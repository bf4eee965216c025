#include "services/parameter_server/rpc/storage_loop.h"

#include <gtest/gtest.h>

#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "services/parameter_server/rpc/pending.h"
#include "tests/unit/services/parameter_server/rpc/lone_server.h"
#include "tests/unit/services/parameter_server/rpc/recording_link.h"

namespace adamant::parameter_server {
namespace {

class StorageLoopTest : public ::testing::Test, private Driver {
 protected:
  StorageLoopTest() {
    loop_.Start(core_, clock_, [this] { stored_.Set(true); });
    EXPECT_TRUE(stored_.Wait([] { return false; }).has_value());
    core_.SetConfigurations(std::vector<Configuration>{Record(false)}, {});
    EXPECT_EQ(served_.Wait([] { return false; }), 1u);
    Configuration created = Record(false);
    created.created = true;
    core_.SetConfigurations(std::vector<Configuration>{created}, {});
  }

  ~StorageLoopTest() override { loop_.Stop(); }

  static ServerOptions Options() {
    return {.job_uid = 1,
            .self = {.slot = 0, .incarnation = 1},
            .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
            .optimisers = {{.location = OptimiserLocation::kWorker}}};
  }

  static Configuration Record(bool created) {
    const Holder self = Options().self;
    return {.epoch = created ? 2u : 1u,
            .generation = 1,
            .primary = self,
            .members = {self},
            .created = created};
  }

  void PushOne() {
    const std::vector<float> ones(4, 1);
    Pending<std::vector<ShardAck>> acks;
    core_.Submit({.writer = {.slot = 0, .incarnation = 1},
                  .updates = {{.bucket_epoch = 1, .sequence = 1, .values = ones}}},
                 [&](std::vector<ShardAck> settled) { acks.Set(std::move(settled)); });
    ASSERT_EQ(acks.Wait([] { return false; })->at(0).outcome, PushOutcome::kApplied);
  }

  /// The version that a process finds in the store after this one's crash.
  std::uint64_t VersionAfterCrash() {
    store_.Crash();
    IdleDriver idle;
    ParameterServer restarted(Options(), store_, clock_, idle);
    EXPECT_TRUE(restarted.ReadStored().ok());
    restarted.SetConfigurations(std::vector<Configuration>{Record(true)}, {});
    EXPECT_TRUE(restarted.DoStorage().ok());
    return restarted.Fetch(nullptr, std::vector<ShardId>{0}, 0)->at(0).version;
  }

 private:
  void SendToPeer(const Holder& /*to*/, PeerMessage /*message*/) override {}
  void Propose(const Proposal& /*proposal*/) override {}
  void Report(const BucketReport& report) override { served_.Set(report.epoch); }
  void WantApply() override {}
  void WantStorage() override { loop_.Want(); }

 protected:
  storage::MemoryStore store_;
  FakeClock clock_;
  metrics::Registry registry_;
  RecordingLink link_;
  Pending<bool> stored_;
  Pending<Epoch> served_;
  StorageLoop loop_{link_, registry_};
  ParameterServer core_{Options(), store_, clock_, *this};
};

TEST_F(StorageLoopTest, BucketsAreCreated) {
  const auto values = core_.Fetch(nullptr, std::vector<ShardId>{0}, 0);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->at(0).outcome, FetchOutcome::kFound);
}

TEST_F(StorageLoopTest, SnapshotsAreTakenAndAnswered) {
  PushOne();
  loop_.Take({.id = 5});
  const v1::MemberMessage message = link_.Receive();
  EXPECT_EQ(message.snapshot_taken().snapshot(), 5u);
  EXPECT_TRUE(message.snapshot_taken().ok());
  ASSERT_EQ(message.snapshot_taken().buckets_size(), 1);
  EXPECT_EQ(message.snapshot_taken().buckets(0).updates(), 1u);
  EXPECT_EQ(message.snapshot_taken().buckets(0).epoch(), 1u);
}

TEST_F(StorageLoopTest, ASnapshotThatCannotBeTakenIsAnsweredWithTheReason) {
  // A snapshot that it should come back from is missing.
  Configuration record = Record(true);
  record.epoch = 3;
  record.generation = 2;
  record.restored_snapshot = 77;
  core_.SetConfigurations(
      std::vector<Configuration>{{.epoch = 2, .generation = 2, .primary = {3, 1}}}, {});
  core_.SetConfigurations(std::vector<Configuration>{record}, {});
  loop_.Take({.id = 5});
  const v1::MemberMessage message = link_.Receive();
  EXPECT_FALSE(message.snapshot_taken().ok());
  EXPECT_NE(message.snapshot_taken().error(), "");
}

TEST_F(StorageLoopTest, StopFlushes) {
  PushOne();
  loop_.Stop();
  EXPECT_EQ(VersionAfterCrash(), 1u);
}

TEST_F(StorageLoopTest, AFailedSyncEndsTheProcess) {
  PushOne();
  store_.FailNextSync();
  clock_.Advance(std::chrono::seconds(10));
  loop_.Want();
  EXPECT_EQ(link_.WaitForFailure().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace adamant::parameter_server
