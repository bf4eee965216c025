// What a store leaves behind when its process is really killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "services/common/base/failpoint.h"
#include "services/common/storage/segments/segment_store.h"

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

#ifdef ADAMANT_FAILPOINTS

constexpr int kValues = 160;
constexpr int kKept = 8;  // every kKept-th value stays, one a segment; the others go

// Makes segments sparse, and dies of `action` as it tidies them up.
void TidyUpAndDie(const fs::path& folder, const std::string& action) {
  fs::create_directories(folder);
  const auto store = Open(folder / "store");
  const std::string value(kValueBytes, 'v');
  for (int i = 0; i < kValues; ++i) {
    EXPECT_TRUE(store->WriteLazily({{Key("large", i), value}}).ok());
  }
  EXPECT_TRUE(store->Flush().ok());
  EXPECT_TRUE(failpoint::SetActions(action).ok());
  for (int i = 0; i < kValues; ++i) {
    const Change gone{.key = Key("large", i), .value = "", .erase = true};
    EXPECT_TRUE(i % kKept == 0 || store->WriteLazily({gone}).ok());
  }
  while (store->Flush().ok()) {
    EXPECT_TRUE(store->WriteLazily({{"small", "1"}}).ok());
  }
}

void ExpectTidyingUpKeepsAll(const std::string& action) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path folder = SharedFolder();
  EXPECT_EXIT(TidyUpAndDie(folder, action), testing::KilledBySignal(SIGKILL), "");
  {
    const auto store = Open(folder / "store");
    for (int i = 0; i < kValues; i += kKept) {
      const auto found = store->Get(Key("large", i));
      ASSERT_TRUE(found.ok()) << i << ": " << found.status();
      EXPECT_EQ(*found, std::string(kValueBytes, 'v')) << i;
    }
  }
  fs::remove_all(folder);
}

TEST(StoreKillTest, ProcessKilledAsItMovesAValueKeepsAll) {
  ExpectTidyingUpKeepsAll("storage/move=crash@1");
}

TEST(StoreKillTest, ProcessKilledAsItFreesSegmentsKeepsAll) {
  ExpectTidyingUpKeepsAll("storage/free=crash@1");
}

#endif  // ADAMANT_FAILPOINTS

}  // namespace
}  // namespace adamant::storage
