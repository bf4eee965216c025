#include "services/parameter_server/rpc/storage/storage_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/busy_meter.h"
#include "services/parameter_server/rpc/gate/pending.h"
#include "services/parameter_server/rpc/storage/watched_store.h"
#include "tests/fakes/interrupted_store.h"
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
    core_.ApplyCommitted();  // the flush that a new primary wants is not one of the tests'
  }

  ~StorageLoopTest() override { loop_.Stop(); }

  static ParameterServerOptions Options() {
    return {.job_uid = 1,
            .self = {.slot = 0, .incarnation = 1},
            .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
            .optimisers = {{.location = OptimiserLocation::kWorker}}};
  }

  static Configuration Record(bool created) {
    const ServerId self = Options().self;
    return {.version = created ? 2u : 1u,
            .generation = 1,
            .primary = self,
            .replicas = {self},
            .created = created};
  }

  void PushOne() {
    const std::vector<float> ones(4, 1);
    Pending<std::vector<ShardAck>> acks;
    core_.Submit({.writer = {.slot = 0, .incarnation = 1},
                  .updates = {{.configuration_version = 1, .sequence = 1, .values = ones}}},
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
  void SendToPeer(const ServerId& /*to*/, PeerMessage /*message*/) override {}
  void Propose(const Proposal& /*proposal*/) override {}
  void Report(const BucketReport& report) override { served_.Set(report.configuration_version); }
  void WantApply() override {}
  void WantStorage() override { loop_.Want(); }

 protected:
  storage::MemoryStore store_;
  fakes::InterruptedStore interrupted_store_{store_};
  FakeClock clock_;
  metrics::Registry registry_;
  RecordingLink link_;
  Pending<bool> stored_;
  Pending<ConfigurationVersion> served_;
  StorageLoop loop_{link_, registry_};
  ParameterServer core_{Options(), interrupted_store_, clock_, *this};
};

TEST_F(StorageLoopTest, BucketsAreCreated) {
  const auto values = core_.Fetch(nullptr, std::vector<ShardId>{0}, 0);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->at(0).outcome, FetchOutcome::kFound);
}

TEST_F(StorageLoopTest, SnapshotsAreTakenAndAnswered) {
  PushOne();
  loop_.Take({.snapshot = 5});
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
  record.version = 3;
  record.generation = 2;
  record.restored_snapshot = 77;
  core_.SetConfigurations(
      std::vector<Configuration>{{.version = 2, .generation = 2, .primary = {3, 1}}}, {});
  core_.SetConfigurations(std::vector<Configuration>{record}, {});
  loop_.Take({.snapshot = 5});
  const v1::MemberMessage message = link_.Receive();
  EXPECT_FALSE(message.snapshot_taken().ok());
  EXPECT_NE(message.snapshot_taken().error(), "");
  EXPECT_FALSE(message.snapshot_taken().disk_full());
}

TEST_F(StorageLoopTest, ASnapshotForWhichThereIsNoRoomSaysSo) {
  store_.SetFull(true);
  loop_.Take({.snapshot = 5});
  const v1::MemberMessage message = link_.Receive();
  EXPECT_FALSE(message.snapshot_taken().ok());
  EXPECT_TRUE(message.snapshot_taken().disk_full());
  store_.SetFull(false);
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

class HungStorageTest : public StorageLoopTest {
 protected:
  Clock::Duration Busy() {
    now_ += std::chrono::seconds(1);
    return meter_.Look(std::vector{loop_.turns()}, now_);
  }

  BusyMeter meter_;
  Clock::TimePoint now_{std::chrono::hours(1)};
};

TEST_F(HungStorageTest, AFlushThatHangsIsBusyUntilItEnds) {
  using std::chrono::seconds;
  PushOne();
  Pending<bool> held;
  Pending<bool> released;
  interrupted_store_.InterruptNextFlush([&] {
    held.Set(true);
    released.Wait([] { return false; });
  });
  clock_.Advance(std::chrono::hours(1));
  loop_.Want();
  held.Wait([] { return false; });
  Busy();
  EXPECT_EQ(Busy(), seconds(1));
  EXPECT_EQ(Busy(), seconds(2));
  loop_.GoOn();
  EXPECT_EQ(Busy(), seconds(0)) << "another call of the store";
  EXPECT_EQ(Busy(), seconds(1));
  released.Set(true);
  while (Busy() > seconds(0)) {
    std::this_thread::yield();
  }
}

TEST(WatchedStoreTest, EachCallAndEachEntryOfAScanIsAStep) {
  storage::MemoryStore store;
  int steps = 0;
  WatchedStore watched(store, [&] { ++steps; });
  EXPECT_TRUE(watched.Write({{.key = "a1", .value = "x"}, {.key = "a2", .value = "y"}}).ok());
  EXPECT_EQ(steps, 2) << "as it begins and as it ends";
  EXPECT_EQ(watched.Get("a1").value(), "x");
  EXPECT_TRUE(watched.WriteLogged({}).ok());
  EXPECT_TRUE(watched.WriteLazily({}).ok());
  EXPECT_TRUE(watched.Flush().ok());
  EXPECT_EQ(steps, 10);
  EXPECT_TRUE(watched.Scan("a", [](auto, auto) { return true; }).ok());
  EXPECT_EQ(steps, 14);
}

}  // namespace
}  // namespace adamant::parameter_server
