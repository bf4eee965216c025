#include "services/common/storage/segments/segment_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/base/system/files.h"
#include "tests/unit/services/common/storage/rocksdb/disk_store_rig.h"

namespace adamant::conformance {
namespace {

using storage::SegmentStore;
using storage::SegmentStoreOptions;

using Rig = DiskStoreRig<SegmentStore, SegmentStoreOptions>;

constexpr std::size_t kValueBytes = SegmentStore::kLargeBytes;

// A segment holds few values, so that all that is done to segments happens often.
SegmentStoreOptions SmallSegments() { return {.segment_bytes = 4 * kValueBytes}; }

INSTANTIATE_TEST_SUITE_P(
    Segments,
    KvStoreSuite,
    testing::Values(
        KvStoreRigFactory{"segments", [] { return std::make_unique<Rig>(SegmentStoreOptions()); }},
        KvStoreRigFactory{"smallsegments", [] { return std::make_unique<Rig>(SmallSegments()); }}));

class SegmentStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    store_.reset();
    auto store = SegmentStore::Open(folder_, SmallSegments());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  absl::Status Put(std::uint64_t key, const std::string& text) {
    return store_->WriteLazily({{std::to_string(key), text + std::string(kValueBytes, 'v')}});
  }

  [[nodiscard]] std::string Start(std::uint64_t key) const {
    const auto value = store_->Get(std::to_string(key));
    return value.ok() ? value->substr(0, value->find('v')) : value.status().ToString();
  }

  [[nodiscard]] std::set<std::string> Segments() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "segments")) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  [[nodiscard]] std::uint64_t SegmentBytes() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "segments")) {
      bytes += entry.file_size();
    }
    return bytes;
  }

  const TestFolder root_;
  const std::filesystem::path folder_ = root_.path() / "store";
  std::unique_ptr<storage::KvStore> store_;
};

TEST_F(SegmentStoreTest, ALimitOfFileSizesWithinABlockIsCalledOne) {
  std::signal(SIGXFSZ, SIG_IGN);  // as all programs do
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{.rlim_cur = kValueBytes / 2 + 1, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status = Put(1, "first");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_TRUE(IsFileSizeLimit(std::string(status.message()))) << status;
  EXPECT_TRUE(Put(1, "again").ok());
}

// Strangers may hold all that a server may open.
TEST_F(SegmentStoreTest, WhileNoFileCanBeOpenedNothingIsDamagedOrLost) {
  ASSERT_TRUE(Put(1, "first").ok());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const absl::Status read = store_->Get("1").status();
  absl::Status written;
  for (std::uint64_t key = 2; written.ok() && key < 10; ++key) {  // until a segment is begun
    written = Put(key, "next");
  }
  setrlimit(RLIMIT_NOFILE, &before);
  for (const absl::Status& status : {read, written}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_TRUE(IsOpenFileLimit(std::string(status.message()))) << status;
  }
  EXPECT_EQ(Start(1), "first");
  EXPECT_TRUE(Put(1, "again").ok());
  EXPECT_EQ(Start(1), "again");
}

TEST_F(SegmentStoreTest, SpaceStaysBoundedWhateverIsRewritten) {
  constexpr std::uint64_t kKeys = 40;
  constexpr std::uint64_t kPaddedBytes = kValueBytes + 4096;  // all values are a little larger
  Rng rng(1);
  std::vector<std::string> expected(kKeys);
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t writes = round == 0 ? kKeys : 10;
    for (std::uint64_t i = 0; i < writes; ++i) {
      const std::uint64_t key = round == 0 ? i : rng.Below(kKeys);
      expected[key] = std::to_string(round);
      ASSERT_TRUE(Put(key, std::to_string(round)).ok());
    }
    ASSERT_TRUE(store_->Flush().ok());
    // Twice the bytes in use, two segments (and what these have over their size), and free files
    // for twice what this round wrote.
    const std::uint64_t bound = 2 * kKeys * kPaddedBytes +
                                2 * (SmallSegments().segment_bytes + kPaddedBytes) +
                                2 * writes * kPaddedBytes;
    ASSERT_LE(SegmentBytes(), bound) << "round " << round;
  }
  Open();
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    EXPECT_EQ(Start(key), expected[key]);
  }
}

TEST_F(SegmentStoreTest, ErasedValuesGiveTheirSpaceBack) {
  for (std::uint64_t key = 0; key < 40; ++key) {
    ASSERT_TRUE(Put(key, "1").ok());
  }
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(store_->WriteLazily({{"", "", true, "x"}}).ok());
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_LE(Segments().size(), 1u) << "the one that is appended to";
}

TEST_F(SegmentStoreTest, ValuesWrittenBeforeADeathButNotFlushedLeaveNoFiles) {
  for (std::uint64_t key = 0; key < 8; ++key) {
    ASSERT_TRUE(Put(key, "flushed").ok());
  }
  ASSERT_TRUE(store_->Flush().ok());
  const std::set<std::string> flushed = Segments();
  for (std::uint64_t key = 0; key < 40; ++key) {
    ASSERT_TRUE(Put(key, "lost").ok());
  }
  const std::filesystem::path copy = root_.path() / "copy";
  std::filesystem::copy(folder_, copy, std::filesystem::copy_options::recursive);
  const auto after = SegmentStore::Open(copy, SmallSegments());
  ASSERT_TRUE(after.ok()) << after.status();
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(copy / "segments")) {
    left.insert(entry.path().filename().string());
  }
  EXPECT_EQ(left, flushed);
}

TEST_F(SegmentStoreTest, MissingSegmentIsDataLossOfItsValuesOnly) {
  for (std::uint64_t key = 0; key < 8; ++key) {
    ASSERT_TRUE(Put(key, "1").ok());
  }
  ASSERT_TRUE(store_->Flush().ok());
  const std::string first = *Segments().begin();
  store_.reset();
  std::filesystem::remove(folder_ / "segments" / first);
  Open();
  int lost = 0;
  for (std::uint64_t key = 0; key < 8; ++key) {
    const auto value = store_->Get(std::to_string(key));
    EXPECT_TRUE(value.ok() || absl::IsDataLoss(value.status())) << value.status();
    lost += value.ok() ? 0 : 1;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 8);
  for (std::uint64_t key = 0; key < 8; ++key) {
    ASSERT_TRUE(Put(key, "2").ok());
  }
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_EQ(Start(0), "2");
}

// What goes on into a file that has no name any more is gone with the process, and cannot be read.
TEST_F(SegmentStoreTest, NothingIsAppendedToAFileThatCannotBeRead) {
  for (const bool replaced : {false, true}) {
    ASSERT_TRUE(Put(1, "1").ok());
    ASSERT_TRUE(store_->Flush().ok());
    const std::filesystem::path open = folder_ / "segments" / *Segments().rbegin();
    std::filesystem::remove(open);
    if (replaced) {
      std::ofstream(open) << "another file";
    }
    EXPECT_TRUE(absl::IsDataLoss(store_->Get("1").status()));
    ASSERT_TRUE(Put(1, "2").ok());
    EXPECT_EQ(Start(1), "2");
    ASSERT_TRUE(store_->Flush().ok());
    Open();
    EXPECT_EQ(Start(1), "2");
  }
}

TEST_F(SegmentStoreTest, ReadersNeverMissAValueThatMovesBetweenRecordsAndSegments) {
  ASSERT_TRUE(Put(1, "0").ok());
  std::atomic<bool> done = false;
  std::atomic<int> failures = 0;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        failures += store_->Get("1").ok() ? 0 : 1;
        int visited = 0;
        const absl::Status scanned = store_->Scan("", [&](auto, auto) { return ++visited > 0; });
        failures += scanned.ok() && visited == 1 ? 0 : 1;
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(Put(1, std::to_string(round)).ok());
    ASSERT_TRUE(store_->Flush().ok());
    ASSERT_TRUE(store_->WriteLogged({{"1", "small"}}).ok());
  }
  done = true;
  readers.clear();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace adamant::conformance
