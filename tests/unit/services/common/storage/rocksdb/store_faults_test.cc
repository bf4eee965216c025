// What the stores on disk make of a disk that fails.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "services/common/storage/segments/segment_store.h"
#include "tests/fakes/faulty_file_system.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::storage {
namespace {

constexpr std::size_t kLarge = SegmentStore::kLargeBytes;
constexpr int kKeys = 4;

absl::StatusOr<std::unique_ptr<KvStore>> OpenRocksDb(const std::filesystem::path& folder,
                                                     rocksdb::Env* env) {
  RocksDbOptions options;
  options.env = env;
  return RocksDbStore::Open(folder, options);
}

// Few values in a segment, so that segments are begun, freed, reused and emptied all the time.
absl::StatusOr<std::unique_ptr<KvStore>> OpenSegments(const std::filesystem::path& folder,
                                                      rocksdb::Env* env) {
  return SegmentStore::Open(folder, {.segment_bytes = 2 * kLarge, .env = env});
}

struct Kind {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<KvStore>>(const std::filesystem::path&,
                                                         rocksdb::Env*)>
      open;
  std::string data_ending;  // of the files with flushed values
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

// The value of every key in a generation: generations of all keys are written and flushed together.
std::string Value(int generation, int key) {
  return std::to_string(generation) + "/" + std::to_string(key) + std::string(kLarge, 'v');
}

std::string Key(int key) { return "key" + std::to_string(key); }

absl::Status WriteGeneration(KvStore& store, int generation) {
  for (int key = 0; key < kKeys; ++key) {
    absl::Status written = store.WriteLazily({{Key(key), Value(generation, key)}});
    if (!written.ok()) {
      return written;
    }
  }
  return store.WriteLazily({{"generation", std::to_string(generation)}});
}

class StoreFaultsTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { Open("store"); }
  void TearDown() override { store_.reset(); }

  void Open(const std::string& name) {
    store_.reset();
    auto store = GetParam().open(root_.path() / name, disk_.env());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  fakes::FaultyFileSystem disk_;
  const TestFolder root_;
  std::unique_ptr<KvStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Disk,
                         StoreFaultsTest,
                         testing::Values(Kind{"RocksDB", OpenRocksDb, ".sst"},
                                         Kind{"segments", OpenSegments, ".segment"}),
                         [](const auto& about) { return about.param.name; });

TEST_P(StoreFaultsTest, FullDiskLosesNothingAndWritesGoOnWhenThereIsRoom) {
  ASSERT_TRUE(WriteGeneration(*store_, 1).ok());
  ASSERT_TRUE(store_->Flush().ok());
  disk_.SetFull(true);
  for (int attempt = 0; attempt < 3; ++attempt) {
    absl::Status status = WriteGeneration(*store_, 2);
    status.Update(store_->Flush());
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_TRUE(absl::IsResourceExhausted(store_->Write({{"small", "1"}})));
    EXPECT_TRUE(store_->Get(Key(0)).ok());
  }
  disk_.SetFull(false);
  ASSERT_TRUE(WriteGeneration(*store_, 3).ok());
  const absl::Status flushed = store_->Flush();
  ASSERT_TRUE(flushed.ok()) << flushed;
  disk_.LosePower(root_.path() / "store", root_.path() / "after");
  Open("after");
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(store_->Get(Key(key)).value(), Value(3, key));
  }
}

TEST_P(StoreFaultsTest, ADiskThatIsFullAtTheFirstWriteAfterOpeningIsFullAndNoMore) {
  ASSERT_TRUE(store_->Write({{"old", "1"}}).ok());
  Open("store");
  for (int time = 0; time < 2; ++time) {
    disk_.SetFull(true);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const absl::Status status = store_->Write({{"small", "1"}});
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    }
    EXPECT_EQ(store_->Get("old").value(), "1");
    disk_.SetFull(false);
    const absl::Status written = store_->Write({{"small", std::to_string(time)}});
    ASSERT_TRUE(written.ok()) << written;
  }
  Open("store");
  EXPECT_EQ(store_->Get("small").value(), "1");
}

TEST_P(StoreFaultsTest, FailedSyncIsDataLossAndNeverForgotten) {
  ASSERT_TRUE(WriteGeneration(*store_, 1).ok());
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(WriteGeneration(*store_, 2).ok());
  disk_.FailNextSync();
  EXPECT_TRUE(absl::IsDataLoss(store_->Flush()));
  // The system may have thrown away what it could not write: a later success must not count on it.
  const int durable = store_->Flush().ok() ? 2 : 1;
  disk_.LosePower(root_.path() / "store", root_.path() / "after");
  Open("after");
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(store_->Get(Key(key)).value(), Value(durable, key));
  }
}

TEST_P(StoreFaultsTest, FailedWriteIsDataLoss) {
  disk_.FailWrites(true);
  absl::Status status = WriteGeneration(*store_, 1);
  status.Update(store_->Flush());
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_P(StoreFaultsTest, UnreadableDiskIsUnavailableAndPasses) {
  ASSERT_TRUE(WriteGeneration(*store_, 1).ok());
  ASSERT_TRUE(store_->Flush().ok());
  Open("store");  // so that RocksDB's log becomes a table
  disk_.FailReads(true);
  EXPECT_TRUE(absl::IsUnavailable(store_->Get(Key(0)).status())) << store_->Get(Key(0)).status();
  EXPECT_FALSE(store_->Scan("", [](auto, auto) { return true; }).ok());
  disk_.FailReads(false);
  EXPECT_EQ(store_->Get(Key(0)).value(), Value(1, 0));
}

TEST_P(StoreFaultsTest, FlippedBitIsDataLossAndNeverAWrongValue) {
  ASSERT_TRUE(WriteGeneration(*store_, 1).ok());
  ASSERT_TRUE(store_->Flush().ok());
  Open("store");  // so that RocksDB's log becomes a table
  disk_.FlipBitsIn(GetParam().data_ending);
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_TRUE(absl::IsDataLoss(store_->Get(Key(key)).status()));
  }
  disk_.FlipBitsIn("");
  EXPECT_EQ(store_->Get(Key(0)).value(), Value(1, 0));
}

TEST_P(StoreFaultsTest, FlippedBitInTheLogIsDataLossAtOpen) {
  ASSERT_TRUE(WriteGeneration(*store_, 1).ok());
  ASSERT_TRUE(store_->Flush().ok());
  store_.reset();
  disk_.FlipBitsIn(".log");
  const absl::Status status = GetParam().open(root_.path() / "store", disk_.env()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  disk_.FlipBitsIn("");
  Open("store");
  EXPECT_EQ(store_->Get(Key(0)).value(), Value(1, 0));
}

TEST_P(StoreFaultsTest, SlowDiskDelaysButDoesNotFail) {
  std::atomic<int> calls = 0;
  disk_.SetDelay([&] { ++calls; });
  ASSERT_TRUE(WriteGeneration(*store_, 1).ok());
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_GT(calls, 0);
  EXPECT_EQ(store_->Get(Key(0)).value(), Value(1, 0));
  store_.reset();  // which waits for its threads, so that none counts any more
}

// What a loss of power at one moment left.
class Survivor {
 public:
  explicit Survivor(const KvStore& store) : store_(store) {}

  /// The generation that is there, whole; -1 if none; fails the test if there is a mixture.
  int Generation() {
    const auto found = store_.Get("generation");
    const int generation = found.ok() ? std::stoi(*found) : -1;
    for (int key = 0; key < kKeys; ++key) {
      const auto value = store_.Get(Key(key));
      EXPECT_EQ(value.ok(), generation >= 0) << value.status();
      if (value.ok()) {
        EXPECT_EQ(*value, Value(generation, key)) << "generation " << generation;
      } else {
        EXPECT_TRUE(absl::IsNotFound(value.status())) << value.status();
      }
    }
    return generation;
  }

 private:
  const KvStore& store_;
};

constexpr int kGenerations = 4;

// Flushes generations until the disk stops after `changes` more changes. The last generation whose
// flush succeeded, or -1.
int WriteUntilTheDiskStops(KvStore& store, fakes::FaultyFileSystem& disk, std::uint64_t changes) {
  disk.StopAfter(changes);
  int durable = -1;
  for (int generation = 0; generation < kGenerations; ++generation) {
    absl::Status status = WriteGeneration(store, generation);
    status.Update(store.Flush());
    if (!status.ok()) {
      break;
    }
    durable = generation;
  }
  return durable;
}

class PowerLossTest : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(UnsyncedBytes,
                         PowerLossTest,
                         testing::Values(false, true),
                         [](const auto& about) { return about.param ? "mayStay" : "go"; });

TEST_P(PowerLossTest, LeavesExactlyAFlushedGenerationAtEveryChangeOfTheDisk) {
  int last = -1;
  for (std::uint64_t changes = 0; last < kGenerations - 1; ++changes) {
    SCOPED_TRACE(std::to_string(changes) + " changes");
    ASSERT_LT(changes, 1000u) << "the generations are never all written";
    fakes::FaultyFileSystem disk;
    const TestFolder root;
    auto store = OpenSegments(root.path() / "store", disk.env());
    ASSERT_TRUE(store.ok()) << store.status();
    const int durable = WriteUntilTheDiskStops(**store, disk, changes);
    Rng rng(changes);
    disk.LosePower(root.path() / "store", root.path() / "after", GetParam() ? &rng : nullptr);
    const auto after = OpenSegments(root.path() / "after", nullptr);
    ASSERT_TRUE(after.ok()) << after.status();
    const int found = Survivor(**after).Generation();
    EXPECT_GE(found, durable);
    EXPECT_LE(found, durable + 1);
    EXPECT_GE(durable, last) << "more changes keep more";
    last = durable;
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace adamant::storage
