// What a store leaves behind when its process is really killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "services/common/storage/segment_store.h"

namespace adamant::storage {
namespace {

namespace fs = std::filesystem;

constexpr int kWrites = 40;
constexpr int kFlushed = 25;  // of them, together with what was lazily written before
constexpr std::size_t kValueBytes = std::size_t{1} << 18;

std::string Key(const std::string& kind, int i) {
  return kind + "/" + std::to_string(1000 + i);  // in the order of i
}

std::unique_ptr<KvStore> Open(const fs::path& folder) {
  auto store = SegmentStore::Open(folder, {.segment_bytes = 8 * kValueBytes});
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

void WriteAndDie(const fs::path& folder) {
  const auto store = Open(folder);
  const std::string value(kValueBytes, 'v');
  for (int i = 0; i < kWrites; ++i) {
    EXPECT_TRUE(i != kFlushed || store->Flush().ok());
    EXPECT_TRUE(store->WriteLazily({{Key("large", i), value}, {Key("small", i), "1"}}).ok());
    EXPECT_TRUE(store->WriteLogged({{Key("logged", i), value}}).ok());
    EXPECT_TRUE(i % 10 != 0 || store->Write({{Key("synced", i), value}}).ok());
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

TEST(StoreKillTest, KilledProcessLosesOnlyLazyWritesSinceTheLastFlush) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path folder = SharedFolder();
  EXPECT_EXIT(WriteAndDie(folder / "store"), testing::KilledBySignal(SIGKILL), "");
  {
    const auto store = Open(folder / "store");
    for (int i = 0; i < kWrites; ++i) {
      EXPECT_EQ(store->Get(Key("logged", i)).value().size(), kValueBytes);
      EXPECT_EQ(store->Get(Key("synced", i)).ok(), i % 10 == 0);
      EXPECT_EQ(store->Get(Key("large", i)).ok(), i < kFlushed) << i;
      EXPECT_EQ(store->Get(Key("small", i)).ok(), i < kFlushed) << i;
    }
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace adamant::storage
