// What RocksDB leaves behind when its process is really killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "services/common/storage/rocksdb_store.h"

namespace adamant::storage {
namespace {

namespace fs = std::filesystem;

constexpr int kWrites = 40;
constexpr std::size_t kValueBytes = std::size_t{1} << 18;

std::string Key(const std::string& kind, int i) {
  return kind + "/" + std::to_string(1000 + i);  // in the order of i
}

std::unique_ptr<KvStore> Open(const fs::path& folder) {
  // Small, so that tables are being written in the background at the moment of death.
  auto store = RocksDbStore::Open(folder, {.write_buffer_bytes = std::uint64_t{1} << 20});
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

// Writes the same numbers of all kinds, flushes in the middle, and dies.
void WriteAndDie(const fs::path& folder) {
  const auto store = Open(folder);
  const std::string value(kValueBytes, 'v');
  for (int i = 0; i < kWrites; ++i) {
    EXPECT_TRUE(store->WriteLazily({{Key("lazy", i), value}}).ok());
    EXPECT_TRUE(store->WriteLogged({{Key("logged", i), value}}).ok());
    EXPECT_TRUE(i % 10 != 0 || store->Write({{Key("synced", i), value}}).ok());
    EXPECT_TRUE(i != kWrites / 2 || store->Flush().ok());
  }
  kill(getpid(), SIGKILL);
}

// The child that dies starts this program anew, because RocksDB's threads do not survive a fork,
// and finds the folder in the environment.
fs::path SharedFolder() {
  if (const char* folder = std::getenv("ADAMANT_KILL_TEST_FOLDER"); folder != nullptr) {
    return folder;
  }
  std::string name = (fs::temp_directory_path() / "adamant-kill-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  setenv("ADAMANT_KILL_TEST_FOLDER", name.c_str(), 1);
  return name;
}

TEST(RocksDbKillTest, KilledProcessLosesNothingLoggedAndNoLazyWriteBeforeOneThatSurvived) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path folder = SharedFolder();
  EXPECT_EXIT(WriteAndDie(folder / "store"), testing::KilledBySignal(SIGKILL), "");
  {
    const auto store = Open(folder / "store");
    bool gap = false;
    for (int i = 0; i < kWrites; ++i) {
      EXPECT_EQ(store->Get(Key("logged", i)).value().size(), kValueBytes);
      EXPECT_EQ(store->Get(Key("synced", i)).ok(), i % 10 == 0);
      const bool there = store->Get(Key("lazy", i)).ok();
      EXPECT_TRUE(there || i > kWrites / 2) << i << " was flushed";
      EXPECT_FALSE(there && gap) << i;
      gap = gap || !there;
    }
    EXPECT_TRUE(gap) << "lazy writes are not supposed to be safe";
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace adamant::storage
