#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "tests/unit/services/common/storage/test_folder.h"

// A store whose log on disk is damaged, after an orderly end and after none.
namespace adamant::storage {
namespace {

using testing::HasSubstr;

constexpr int kWrites = 20;

std::string Key(int write) { return "key" + std::to_string(write); }

// Some take several blocks of the log.
std::string Value(int write) {
  return "value" + std::to_string(write) + "." + std::string(write % 7 == 3 ? 70'000 : 200, 'x');
}

class FileCheckTest : public testing::Test {
 protected:
  FileCheckTest() {
    auto store = RocksDbStore::Open(closed_);
    EXPECT_TRUE(store.ok()) << store.status();
    for (int write = 0; write < kWrites; ++write) {
      EXPECT_TRUE((*store)->Write({{Key(write), Value(write)}}).ok());
    }
    std::filesystem::copy(closed_, killed_, std::filesystem::copy_options::recursive);
    store->reset();
    log_ = Read(LogOf(killed_));
    EXPECT_EQ(Read(LogOf(closed_)), log_);
  }

  static std::filesystem::path LogOf(const std::filesystem::path& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".log") {
        return entry.path();
      }
    }
    ADD_FAILURE() << "no log in " << folder;
    return {};
  }

  static std::string Read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// A copy of the folder, with another log.
  std::filesystem::path With(const std::filesystem::path& folder, const std::string& log) {
    const std::filesystem::path copy = root_.path() / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
    std::ofstream(LogOf(copy), std::ios::binary) << log;
    return copy;
  }

  [[nodiscard]] std::string Flipped(std::size_t at) const {
    std::string log = log_;
    log[at] = static_cast<char>(log[at] ^ 1);
    return log;
  }

  /// Where the last write begins.
  [[nodiscard]] std::size_t LastWrite() const { return log_.rfind(Key(kWrites - 1)) - 21; }

  /// How many writes are there, or -1 if the store is refused; without a gap.
  static int Writes(const std::filesystem::path& folder) {
    const auto store = RocksDbStore::Open(folder);
    if (!store.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(store.status())) << store.status();
      return -1;
    }
    int writes = 0;
    while (writes < kWrites && (*store)->Get(Key(writes)).ok()) {
      ++writes;
    }
    for (int write = writes; write < kWrites; ++write) {
      EXPECT_FALSE((*store)->Get(Key(write)).ok());
    }
    return writes;
  }

  const TestFolder root_;
  const std::filesystem::path closed_ = root_.path() / "closed";
  const std::filesystem::path killed_ = root_.path() / "killed";
  std::string log_;
};

TEST_F(FileCheckTest, AWholeLogIsNoReasonToRefuse) {
  EXPECT_EQ(Writes(killed_), kWrites);
  EXPECT_EQ(Writes(closed_), kWrites);
  EXPECT_EQ(Writes(closed_), kWrites) << "and closed again";
}

TEST_F(FileCheckTest, AFlippedBitBeforeTheLastWriteIsDataLossAndToldWithWhatToDo) {
  for (const auto& folder : {killed_, closed_}) {
    const auto damaged = With(folder, Flipped(log_.find("value7.")));
    for (int attempt = 0; attempt < 2; ++attempt) {
      const absl::Status status = RocksDbStore::Open(damaged).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(status.message(), HasSubstr(LogOf(damaged).string()));
      EXPECT_THAT(status.message(), HasSubstr("remove it"));
    }
  }
}

TEST_F(FileCheckTest, WhereverABitFlipsNothingIsMissingBeforeTheLastWrite) {
  ASSERT_LT(LastWrite(), log_.size());
  for (std::size_t at = 0; at < log_.size(); at += 1'999) {
    EXPECT_EQ(Writes(With(killed_, Flipped(at))), at < LastWrite() ? -1 : kWrites - 1) << at;
  }
  for (std::size_t at = LastWrite() - 10; at < LastWrite() + 40; ++at) {
    EXPECT_EQ(Writes(With(killed_, Flipped(at))), at < LastWrite() ? -1 : kWrites - 1) << at;
  }
}

TEST_F(FileCheckTest, WhatALossOfPowerLeavesOfTheLastWriteIsNoDamage) {
  for (const std::size_t size : {LastWrite(), LastWrite() + 1, LastWrite() + 50, log_.size() - 1}) {
    const std::string cut = log_.substr(0, size);
    EXPECT_EQ(Writes(With(killed_, cut)), kWrites - 1) << size;
    EXPECT_EQ(Writes(With(killed_, cut + std::string(log_.size() - size, '\0'))), kWrites - 1);
  }
  const std::size_t long_one = log_.find("value17.");
  EXPECT_EQ(Writes(With(killed_, log_.substr(0, long_one + 40'000))), 17);
}

TEST_F(FileCheckTest, AfterAnOrderlyEndNothingMayBeMissing) {
  EXPECT_EQ(Writes(With(closed_, log_.substr(0, LastWrite()))), -1);
  EXPECT_EQ(Writes(With(closed_, log_.substr(0, log_.size() - 1))), -1);
  EXPECT_EQ(Writes(With(closed_, Flipped(log_.size() - 1))), -1);
  const auto without = With(closed_, log_);
  std::filesystem::remove(LogOf(without));
  EXPECT_EQ(Writes(without), -1);
}

TEST_F(FileCheckTest, AStoreThatWasClosedBeforeThereWereMarksOpens) {
  const auto earlier = With(closed_, log_);
  ASSERT_TRUE(std::filesystem::remove(earlier / "MARK"));
  EXPECT_EQ(Writes(earlier), kWrites);
}

TEST_F(FileCheckTest, AMarkThatIsDamagedDemandsNothing) {
  const auto folder = With(closed_, log_);
  std::ofstream(folder / "MARK") << "1 0123456789abcdef\n000099.log 7\n";
  EXPECT_EQ(Writes(folder), kWrites);
}

TEST_F(FileCheckTest, AStoreWithoutItsFirstFileIsNotANewOne) {
  for (const auto& folder : {killed_, closed_}) {
    std::filesystem::remove(folder / "CURRENT");
    EXPECT_EQ(Writes(folder), -1);
  }
}

}  // namespace
}  // namespace adamant::storage
