#include "services/parameter_server/rpc/storage_loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/storage/memory_store.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {
namespace {

class RecordingLink final : public service::ControllerLink {
 public:
  void Send(const v1::MemberMessage& message) override {
    const MutexLock lock(mutex_);
    messages_.push_back(message);
    changed_.NotifyAll();
  }

  void Fail(const absl::Status& reason, bool /*fatal*/) override {
    const MutexLock lock(mutex_);
    failure_ = reason;
    changed_.NotifyAll();
  }

  v1::MemberMessage Receive() {
    const MutexLock lock(mutex_);
    while (messages_.empty()) {
      changed_.Wait(mutex_);
    }
    v1::MemberMessage message = messages_.front();
    messages_.pop_front();
    return message;
  }

  absl::Status WaitForFailure() {
    const MutexLock lock(mutex_);
    while (failure_.ok()) {
      changed_.Wait(mutex_);
    }
    return failure_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::MemberMessage> messages_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

class StorageLoopTest : public ::testing::Test {
 protected:
  StorageLoopTest() {
    loop_.Start(core_, clock_);
    SetMap(1, false);
  }

  static ServerOptions Options() {
    return {.job_uid = 1,
            .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
            .optimisers = {{.location = OptimiserLocation::kWorker}}};
  }

  void SetMap(std::uint64_t epoch, bool created) {
    core_.SetMap(std::vector<BucketRecord>{{.epoch = epoch, .created = created}});
    loop_.Prepare();
  }

  /// Lets the created bucket be used, and applies an update.
  void PushOne() {
    EXPECT_EQ(link_.Receive().buckets_ready().buckets(0).epoch(), 1u);
    SetMap(2, true);
    EXPECT_EQ(link_.Receive().buckets_ready().buckets(0).epoch(), 2u);
    const std::vector<float> ones(4, 1);
    const auto acks =
        core_.Apply({.writer = {.slot = 0, .incarnation = 1},
                     .updates = {{.bucket_epoch = 2, .sequence = 1, .values = ones}}});
    ASSERT_EQ(acks[0].outcome, PushOutcome::kApplied);
  }

  /// The version that a process finds in the store after this one's crash.
  std::uint64_t VersionAfterCrash() {
    store_.Crash();
    ParameterServer restarted(Options(), store_, clock_);
    restarted.SetMap(std::vector<BucketRecord>{{.epoch = 2, .created = true}});
    EXPECT_TRUE(restarted.Prepare().ok());
    return restarted.Fetch(nullptr, std::vector<ShardId>{0}, 0)->at(0).version;
  }

  storage::MemoryStore store_;
  FakeClock clock_;
  metrics::Registry registry_;
  RecordingLink link_;
  ParameterServer core_{Options(), store_, clock_};
  StorageLoop loop_{link_, registry_};
};

TEST_F(StorageLoopTest, BucketsArePreparedAndReported) {
  const v1::MemberMessage message = link_.Receive();
  ASSERT_EQ(message.buckets_ready().buckets_size(), 1);
  EXPECT_EQ(message.buckets_ready().buckets(0).bucket(), 0u);
  EXPECT_EQ(message.buckets_ready().buckets(0).epoch(), 1u);
  EXPECT_FALSE(message.buckets_ready().buckets(0).lost());
}

TEST_F(StorageLoopTest, SnapshotsAreTakenAndAnswered) {
  PushOne();
  loop_.Take({.id = 5});
  const v1::MemberMessage message = link_.Receive();
  EXPECT_EQ(message.snapshot_taken().snapshot(), 5u);
  EXPECT_TRUE(message.snapshot_taken().ok());
}

TEST_F(StorageLoopTest, ASnapshotThatCannotBeTakenIsAnsweredWithTheReason) {
  EXPECT_TRUE(link_.Receive().has_buckets_ready());
  loop_.Take({.id = 5});
  const v1::MemberMessage message = link_.Receive();
  EXPECT_FALSE(message.snapshot_taken().ok());
  EXPECT_EQ(message.snapshot_taken().error(), "bucket 0 is not ready");
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
  loop_.DueChanged();
  EXPECT_EQ(link_.WaitForFailure().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace adamant::parameter_server
