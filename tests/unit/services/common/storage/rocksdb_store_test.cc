#include "services/common/storage/rocksdb_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "tests/conformance/kv_store_suite.h"
#include "tests/fakes/faulty_file_system.h"

namespace adamant::conformance {
namespace {

namespace fs = std::filesystem;
using storage::RocksDbOptions;
using storage::RocksDbStore;

fs::path NewFolder() {
  std::string name = (fs::temp_directory_path() / "adamant-rocksdb-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  return name;
}

// The byte offset of `text` in `file`, or npos.
std::size_t Find(const fs::path& file, const std::string& text) {
  std::ifstream in(file, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return content.find(text);
}

class RocksDbRig final : public KvStoreRig {
 public:
  RocksDbRig() { Open(); }
  ~RocksDbRig() override {
    disk_.SetFull(false);
    store_.reset();
    fs::remove_all(root_);
  }

  storage::KvStore& store() override { return *store_; }

  // The files as they are while the store is open are what a killed process leaves behind.
  void Crash() override {
    const fs::path copy = NextFolder();
    fs::copy(folder_, copy);
    Reopen(copy);
  }

  void LosePower() override {
    const fs::path copy = NextFolder();
    disk_.LosePower(folder_, copy);
    Reopen(copy);
  }

  void SetFull(bool full) override { disk_.SetFull(full); }
  void FailNextSync() override { disk_.FailNextSync(); }

  void Corrupt(const std::string& key) override {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".sst") {
        continue;
      }
      const std::size_t at = Find(entry.path(), std::string(1000, key[0]));
      ASSERT_NE(at, std::string::npos);
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(at) + 500);
      file.put('#');
    }
  }

 private:
  void Open() {
    RocksDbOptions options;
    options.env = disk_.env();
    auto store = RocksDbStore::Open(folder_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  fs::path NextFolder() { return root_ / std::to_string(++generation_); }

  void Reopen(const fs::path& folder) {
    disk_.SetFull(false);
    store_.reset();
    folder_ = folder;
    Open();
  }

  fakes::FaultyFileSystem disk_;
  const fs::path root_ = NewFolder();
  fs::path folder_ = root_ / "0";
  int generation_ = 0;
  std::unique_ptr<RocksDbStore> store_;
};

INSTANTIATE_TEST_SUITE_P(RocksDb,
                         KvStoreSuite,
                         testing::Values(KvStoreRigFactory{
                             "RocksDB", [] { return std::make_unique<RocksDbRig>(); }}));

class RocksDbStoreTest : public testing::Test {
 protected:
  ~RocksDbStoreTest() override { fs::remove_all(root_); }
  const fs::path root_ = NewFolder();
};

TEST_F(RocksDbStoreTest, FolderInUseIsUnavailableAndNamed) {
  const auto first = RocksDbStore::Open(root_ / "store");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RocksDbStore::Open(root_ / "store");
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_NE(second.status().message().find((root_ / "store").string()), std::string_view::npos);
}

TEST_F(RocksDbStoreTest, DamagedFilesAreDataLossAtOpen) {
  {
    const auto store = RocksDbStore::Open(root_ / "store");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Write({{"key", "value"}}).ok());
  }
  std::ofstream(root_ / "store" / "CURRENT") << "rubbish";
  EXPECT_TRUE(absl::IsDataLoss(RocksDbStore::Open(root_ / "store").status()));
}

TEST_F(RocksDbStoreTest, OrderlyCloseKeepsLazyWrites) {
  {
    const auto store = RocksDbStore::Open(root_ / "store");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->WriteLazily({{"key", "value"}}).ok());
  }
  const auto store = RocksDbStore::Open(root_ / "store");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Get("key").value(), "value");
}

}  // namespace
}  // namespace adamant::conformance
