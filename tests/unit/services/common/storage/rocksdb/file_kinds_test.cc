// A folder, a FIFO or a file in the place of what a store keeps: nothing waits for it, nothing is
// served of it.

#include "services/common/storage/rocksdb/file_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "services/common/storage/segments/segment_store.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Stranger {
  std::string name;
  std::function<void(const fs::path&)> make;
};

const Stranger kFolder = {"a folder", [](const fs::path& path) {
                            fs::create_directory(path);
                            std::ofstream(path / "file") << "text";
                          }};
const Stranger kFifo = {"a FIFO",
                        [](const fs::path& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }};
const Stranger kFile = {"a file", [](const fs::path& path) { std::ofstream(path) << "text"; }};

const Stranger kLostLink = {"a link that leads nowhere", [](const fs::path& path) {
                              fs::create_symlink("/nowhere/at/all", path);
                            }};

void Replace(const fs::path& path, const Stranger& stranger) {
  fs::remove_all(path);
  stranger.make(path);
}

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

bool IsNeedless(const std::string& name) {
  return name.starts_with("OPTIONS-") || name == "IDENTITY" || name == "LOCK" || name == "MARK";
}

void ExpectTold(const absl::Status& status, const fs::path& path, const Stranger& stranger) {
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path.string() + ": is " + stranger.name));
}

TEST(FileKindsTest, WhatIsNotThereOrLeadsToTheRightKindIsNoError) {
  const TestFolder root;
  const fs::path file = root.path() / "file";
  EXPECT_TRUE(CheckIsFile(file).ok());
  EXPECT_TRUE(CheckIsFolder(file).ok());
  fs::create_symlink("file", root.path() / "link");
  ExpectTold(CheckIsFile(root.path() / "link"), root.path() / "link", kLostLink);
  ExpectTold(CheckIsFolder(root.path() / "link"), root.path() / "link", kLostLink);
  kFile.make(file);
  EXPECT_TRUE(CheckIsFile(root.path() / "link").ok());
  ExpectTold(CheckIsFolder(root.path() / "link"), root.path() / "link", kFile);
  ExpectTold(CheckIsFile(root.path()), root.path(), kFolder);
  ExpectTold(CheckIsFile("/dev/null"), "/dev/null", {"a socket or a device", nullptr});
}

class RecordKindsTest : public testing::Test {
 protected:
  /// A table and a log.
  RecordKindsTest() {
    for (const char* const key : {"table", "log"}) {
      auto store = RocksDbStore::Open(folder_);
      EXPECT_TRUE(store.ok()) << store.status();
      EXPECT_TRUE((*store)->Write({{key, "value"}}).ok());
    }
  }

  fs::path Copy() {
    const fs::path copy = root_.path() / "copy";
    fs::remove_all(copy);
    fs::copy(folder_, copy, fs::copy_options::recursive);
    return copy;
  }

  const TestFolder root_;
  const fs::path folder_ = root_.path() / "store";
};

TEST_F(RecordKindsTest, InThePlaceOfANeededFileItIsDamageAndOfAnotherItGoesAside) {
  for (const std::string& name : NamesIn(folder_)) {
    for (const Stranger& stranger : {kFolder, kFifo, kLostLink}) {
      SCOPED_TRACE(name + " is " + stranger.name);
      const fs::path copy = Copy();
      Replace(copy / name, stranger);
      ExpectTold(RocksDbStore::OpenToRead(copy).status(), copy / name, stranger);
      for (int start = 0; start < 2; ++start) {
        const auto store = RocksDbStore::Open(copy);
        if (!IsNeedless(name)) {
          ExpectTold(store.status(), copy / name, stranger);
          continue;
        }
        ASSERT_TRUE(store.ok()) << store.status();
        EXPECT_EQ((*store)->Get("table").value(), "value");
        EXPECT_EQ((*store)->Get("log").value(), "value");
        EXPECT_TRUE((*store)->Write({{"new", "value"}}).ok());
        EXPECT_FALSE(fs::exists(copy / (name + ".damaged.damaged")));
      }
    }
  }
}

TEST_F(RecordKindsTest, AMarkThatCannotBeReplacedIsNotWaitedFor) {
  const auto store = RocksDbStore::Open(folder_);
  ASSERT_TRUE(store.ok()) << store.status();
  Replace(folder_ / "MARK.new", kFifo);
  EXPECT_TRUE((*store)->Write({{"new", "value"}}).ok());
}

TEST_F(RecordKindsTest, InThePlaceOfTheFolderItIsDamage) {
  for (const Stranger& stranger : {kFile, kFifo}) {
    Replace(folder_, stranger);
    ExpectTold(RocksDbStore::Open(folder_).status(), folder_, stranger);
    ExpectTold(RocksDbStore::OpenToRead(folder_).status(), folder_, stranger);
  }
}

TEST_F(RecordKindsTest, WhatIsNotOfTheStoreMayBeAnything) {
  Replace(folder_ / "lost+found", kFolder);
  Replace(folder_ / "pipe", kFifo);
  EXPECT_TRUE(RocksDbStore::Open(folder_).ok());
}

class SegmentKindsTest : public testing::Test {
 protected:
  SegmentKindsTest() {
    const auto store = Open();
    EXPECT_TRUE(store->WriteLazily({{"lost", Value('l')}}).ok());
    EXPECT_TRUE(store->Flush().ok());
  }

  [[nodiscard]] std::unique_ptr<KvStore> Open() const {
    auto store = SegmentStore::Open(folder_, {.segment_bytes = SegmentStore::kLargeBytes});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  static std::string Value(char letter) { return std::string(SegmentStore::kLargeBytes, letter); }

  const TestFolder root_;
  const fs::path folder_ = root_.path() / "store";
  const fs::path segment_ = folder_ / "segments" / "1.segment";
};

TEST_F(SegmentKindsTest, InThePlaceOfASegmentItIsTheDamageOfItsValuesAlone) {
  for (const Stranger& stranger : {kFolder, kFifo}) {
    SCOPED_TRACE(stranger.name);
    Replace(segment_, stranger);
    for (int start = 0; start < 2; ++start) {
      const auto store = Open();
      ExpectTold(store->Get("lost").status(), segment_, stranger);
      // It is never written to, as a segment that is of no use any more is.
      for (const char* const key : {"new", "newer", "new", "newer"}) {
        ASSERT_TRUE(store->WriteLazily({{key, Value('n')}}).ok());
        ASSERT_TRUE(store->Flush().ok());
      }
      EXPECT_EQ(store->Get("new").value(), Value('n'));
    }
  }
}

TEST_F(SegmentKindsTest, ItIsSeenWhileTheStoreIsOpen) {
  const auto store = Open();
  Replace(segment_, kFifo);
  ExpectTold(store->Get("lost").status(), segment_, kFifo);
}

TEST_F(SegmentKindsTest, AFreeSegmentThatIsNoneIsNotReused) {
  const auto store = Open();
  ASSERT_TRUE(store->WriteLazily({{"lost", Value('n')}}).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(fs::exists(segment_)) << "free, and kept for the next";
  Replace(segment_, kFifo);
  ASSERT_TRUE(store->WriteLazily({{"new", Value('n')}}).ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(store->Get("new").value(), Value('n'));
}

TEST_F(SegmentKindsTest, InThePlaceOfAFolderItIsDamage) {
  for (const fs::path& path : {folder_ / "records", folder_ / "segments", folder_}) {
    for (const Stranger& stranger : {kFile, kFifo, kLostLink}) {
      Replace(path, stranger);
      ExpectTold(SegmentStore::Open(folder_).status(), path, stranger);
      fs::remove(path);
    }
  }
}

}  // namespace
}  // namespace adamant::storage
