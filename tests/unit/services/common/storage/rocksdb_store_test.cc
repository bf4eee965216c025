#include "services/common/storage/rocksdb_store.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "tests/conformance/kv_store_suite.h"

namespace adamant::conformance {
namespace {

namespace fs = std::filesystem;
using storage::RocksDbOptions;
using storage::RocksDbStore;

struct Faults {
  std::atomic<bool> full = false;
  std::atomic<bool> fail_sync = false;
};

// A file that fails as the faults say.
class FaultyFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, Faults& faults)
      : FSWritableFileOwnerWrapper(std::move(file)), faults_(faults) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& data,
                           const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    return faults_.full ? rocksdb::IOStatus::NoSpace("No space left on device")
                        : FSWritableFileOwnerWrapper::Append(data, options, debug);
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data,
                           const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo&,
                           rocksdb::IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    return faults_.fail_sync.exchange(false) ? rocksdb::IOStatus::IOError("sync failed")
                                             : FSWritableFileOwnerWrapper::Sync(options, debug);
  }

 private:
  Faults& faults_;
};

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(Faults& faults)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), faults_(faults) {}

  [[nodiscard]] const char* Name() const override { return "FaultyFileSystem"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name,
                                    const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const auto status = FileSystemWrapper::NewWritableFile(name, options, &file, debug);
    if (status.ok()) {
      *result = std::make_unique<FaultyFile>(std::move(file), faults_);
    }
    return status;
  }

 private:
  Faults& faults_;
};

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
    faults_.full = false;
    store_.reset();
    fs::remove_all(root_);
  }

  storage::KvStore& store() override { return *store_; }

  // The files as they are while the store is open are what a killed process leaves behind.
  void Crash() override {
    const fs::path copy = root_ / std::to_string(++generation_);
    fs::copy(folder_, copy);
    faults_.full = false;
    store_.reset();
    folder_ = copy;
    Open();
  }

  void SetFull(bool full) override { faults_.full = full; }
  void FailNextSync() override { faults_.fail_sync = true; }

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
    options.env = env_.get();
    auto store = RocksDbStore::Open(folder_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  Faults faults_;
  const std::unique_ptr<rocksdb::Env> env_ =
      rocksdb::NewCompositeEnv(std::make_shared<FaultyFileSystem>(faults_));
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
