#include "services/common/storage/rocksdb/rocksdb_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/conformance/kv_store_suite.h"
#include "tests/unit/services/common/storage/rocksdb/disk_store_rig.h"

namespace adamant::conformance {
namespace {

using storage::RocksDbOptions;
using storage::RocksDbStore;

using Rig = DiskStoreRig<RocksDbStore, RocksDbOptions>;

INSTANTIATE_TEST_SUITE_P(RocksDb,
                         KvStoreSuite,
                         testing::Values(KvStoreRigFactory{
                             "RocksDB", [] { return std::make_unique<Rig>(RocksDbOptions()); }}));

class RocksDbStoreTest : public testing::Test {
 protected:
  const TestFolder root_;
};

TEST_F(RocksDbStoreTest, FolderInUseIsUnavailableAndNamed) {
  const auto first = RocksDbStore::Open(root_.path() / "store");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RocksDbStore::Open(root_.path() / "store");
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_NE(second.status().message().find((root_.path() / "store").string()),
            std::string_view::npos);
}

TEST_F(RocksDbStoreTest, AReaderSeesWhatIsStoredWhileAnotherHasItOpenAndWritesNothing) {
  const auto folder = root_.path() / "store";
  const auto owner = RocksDbStore::Open(folder);
  ASSERT_TRUE(owner.ok()) << owner.status();
  ASSERT_TRUE((*owner)->Write({{"key", "value"}}).ok());
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder),
                         std::filesystem::directory_iterator());
  };
  const auto before = files();
  const auto reader = RocksDbStore::OpenToRead(folder);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Get("key").value(), "value");
  EXPECT_FALSE((*reader)->Write({{"key", "mine"}}).ok());
  EXPECT_EQ(files(), before);
  EXPECT_TRUE((*owner)->Write({{"key", "other"}}).ok());
}

TEST_F(RocksDbStoreTest, DamagedFilesAreDataLossAtOpen) {
  {
    const auto store = RocksDbStore::Open(root_.path() / "store");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Write({{"key", "value"}}).ok());
  }
  std::ofstream(root_.path() / "store" / "CURRENT") << "rubbish";
  EXPECT_TRUE(absl::IsDataLoss(RocksDbStore::Open(root_.path() / "store").status()));
}

TEST_F(RocksDbStoreTest, OrderlyCloseKeepsLazyWrites) {
  {
    const auto store = RocksDbStore::Open(root_.path() / "store");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->WriteLazily({{"key", "value"}}).ok());
  }
  const auto store = RocksDbStore::Open(root_.path() / "store");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Get("key").value(), "value");
}

}  // namespace
}  // namespace adamant::conformance
