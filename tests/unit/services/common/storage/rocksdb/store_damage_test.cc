// A bit flipped, the end cut, the file gone: in every kind of file that RocksDB keeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/common/storage/rocksdb/file_mark.h"
#include "services/common/storage/rocksdb/log_scan.h"
#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "tests/fakes/faulty_file_system.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kWrites = 60;

std::string Key(int write) { return "key" + std::to_string(1000 + write); }

std::string Value(int write) { return std::to_string(write) + std::string(3000, 'v'); }

std::string ReadBytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// "000012.log" -> "*.log", "MANIFEST-000005" -> "MANIFEST-*".
std::string KindOf(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const std::string prefix : {"MANIFEST-", "OPTIONS-"}) {
    if (name.starts_with(prefix)) {
      return prefix + "*";
    }
  }
  return path.has_extension() ? "*" + path.extension().string() : name;
}

/// Without these, or with others, a store has all that it had: RocksDB makes them anew.
const std::set<std::string>& Harmless() {
  static const std::set<std::string> kHarmless = {"OPTIONS-*", "IDENTITY", "LOCK", "MARK"};
  return kHarmless;
}

const std::set<std::string>& Vital() {
  static const std::set<std::string> kVital = {"CURRENT", "MANIFEST-*", "*.log", "*.sst"};
  return kVital;
}

struct Damage {
  std::string what;
  std::function<void(const fs::path&)> apply;
};

Damage Flip(double where) {
  return {"bit flipped at " + std::to_string(where), [where](const fs::path& path) {
            std::string bytes = ReadBytes(path);
            if (!bytes.empty()) {
              const auto at = static_cast<std::size_t>(where * static_cast<double>(bytes.size()));
              bytes[at] = static_cast<char>(bytes[at] ^ 4);
              WriteBytes(path, bytes);
            }
          }};
}

Damage Cut(double where) {
  return {"cut at " + std::to_string(where), [where](const fs::path& path) {
            const auto bytes = static_cast<double>(fs::file_size(path));
            fs::resize_file(path, static_cast<std::uintmax_t>(where * bytes));
          }};
}

/// The last record of a log, or of a MANIFEST, is gone as if it had never been written.
Damage CutRecord() {
  return {"cut at a record's end", [](const fs::path& path) {
            const std::string bytes = ReadBytes(path);
            std::size_t end = bytes.size();
            for (std::size_t size = 0; size < bytes.size(); ++size) {
              if (ScanLog(std::string_view(bytes).substr(0, size)).whole == size) {
                end = size;
              }
            }
            fs::resize_file(path, end);
          }};
}

Damage Gone() {
  return {"gone", [](const fs::path& path) { fs::remove(path); }};
}

std::vector<Damage> DamagesOf(const std::string& kind) {
  std::vector<Damage> damages = {Gone(), Cut(0), Cut(0.5), Cut(0.999), Flip(0.3)};
  if (Harmless().contains(kind)) {
    return damages;
  }
  for (const double where : {0.0, 0.1, 0.7, 0.9999}) {
    damages.push_back(Flip(where));
  }
  if (kind == "MANIFEST-*") {
    damages.push_back(CutRecord());
  }
  return damages;
}

class StoreDamageTest : public testing::Test {
 protected:
  /// Two tables, and a log.
  StoreDamageTest() {
    for (int open = 0; open < 3; ++open) {
      auto store = RocksDbStore::Open(closed_, {.env = disk_.env()});
      EXPECT_TRUE(store.ok()) << store.status();
      for (int write = open * kWrites / 3; write < (open + 1) * kWrites / 3; ++write) {
        EXPECT_TRUE((*store)->Write({{Key(write), Value(write)}}).ok());
      }
      if (open == 2) {
        disk_.Copy(closed_, killed_);
      }
    }
  }

  static std::vector<std::string> FilesOf(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  static std::string NewestLog(const fs::path& folder) {
    std::string newest;
    for (const std::string& name : FilesOf(folder)) {
      newest = name.ends_with(".log") ? std::max(newest, name) : newest;
    }
    return newest;
  }

  /// As stores were marked at an orderly end before the mark knew the manifest.
  void MakeFormerMark(const fs::path& folder) {
    absl::StatusOr<FileMark> mark = ReadMark(*disk_.env(), folder);
    ASSERT_TRUE(mark.ok()) << mark.status();
    std::erase_if(*mark, [](const auto& file) { return file.first.starts_with("MANIFEST-"); });
    ASSERT_TRUE(WriteMark(*disk_.env(), folder, *mark).ok());
    fs::rename(folder / "MARK", folder / "CLOSED");
  }

  fs::path CopyOf(const fs::path& folder) {
    const fs::path copy = root_.path() / "copy";
    fs::remove_all(copy);
    fs::copy(folder, copy, fs::copy_options::recursive);
    return copy;
  }

  /// The first writes that are there, all of them with their values, and none behind a gap.
  static int Writes(const KvStore& store) {
    int writes = 0;
    for (int write = 0; write < kWrites; ++write) {
      const absl::StatusOr<std::string> value = store.Get(Key(write));
      if (value.ok()) {
        EXPECT_EQ(*value, Value(write));
        EXPECT_EQ(writes, write) << "behind a gap";
        ++writes;
      }
    }
    return writes;
  }

  /// How it opens; then nothing may be missing but the end of a log.
  static absl::Status CheckReader(const fs::path& folder) {
    const auto reader = RocksDbStore::OpenToRead(folder);
    if (reader.ok()) {
      EXPECT_GE(Writes(**reader), 2 * kWrites / 3);
    }
    return reader.status();
  }

  /// What is wrong is seen when the store is opened, or nothing is missing.
  void CheckAll(const fs::path& folder, const std::string& kind, const std::string& name) {
    for (const Damage& damage : DamagesOf(kind)) {
      SCOPED_TRACE(name + ": " + damage.what);
      const fs::path copy = CopyOf(folder);
      damage.apply(copy / name);
      const bool same =
          fs::exists(copy / name) && ReadBytes(copy / name) == ReadBytes(folder / name);
      const absl::Status reader = CheckReader(copy);
      const auto store = RocksDbStore::Open(copy);
      if (same || Harmless().contains(kind)) {
        ASSERT_TRUE(store.ok()) << store.status();
        EXPECT_EQ(Writes(**store), kWrites);
        continue;
      }
      // The end of the log that a kill leaves may have been cut by it.
      const bool may_be_cut = kind == "*.log" && folder == killed_;
      if (may_be_cut && damage.what != "gone" && store.ok()) {
        EXPECT_GE(Writes(**store), 2 * kWrites / 3);
        continue;
      }
      EXPECT_TRUE(absl::IsDataLoss(reader)) << reader;
      EXPECT_TRUE(absl::IsDataLoss(store.status())) << store.status();
      EXPECT_THAT(store.status().message(), HasSubstr(copy.string()));
    }
  }

  fakes::FaultyFileSystem disk_;
  const TestFolder root_;
  const fs::path closed_ = root_.path() / "closed";
  const fs::path killed_ = root_.path() / "killed";
};

TEST_F(StoreDamageTest, WhicheverFileIsDamagedTheStoreIsRefusedOrWhole) {
  for (const fs::path& folder : {closed_, killed_}) {
    SCOPED_TRACE(folder.filename());
    for (const std::string& name : FilesOf(folder)) {
      CheckAll(folder, KindOf(name), name);
    }
  }
}

TEST_F(StoreDamageTest, EveryKindOfFileIsKnown) {
  for (const fs::path& folder : {closed_, killed_}) {
    std::set<std::string> kinds;
    for (const std::string& name : FilesOf(folder)) {
      kinds.insert(KindOf(name));
      EXPECT_TRUE(Harmless().contains(KindOf(name)) || Vital().contains(KindOf(name))) << name;
    }
    for (const std::string& kind : Vital()) {
      EXPECT_TRUE(kinds.contains(kind)) << kind;
    }
  }
}

TEST_F(StoreDamageTest, ALogWhoseEndIsCutIsDamagedWhereAnotherGoesOn) {
  const fs::path copy = CopyOf(killed_);
  const fs::path log = copy / NewestLog(copy);
  fs::copy(log, copy / "000999.log");
  fs::resize_file(log, fs::file_size(log) - 1);
  const absl::Status status = RocksDbStore::Open(copy).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(log.string()));
}

// The store removes what it needs no more, and is killed before it has marked what is left.
TEST_F(StoreDamageTest, AMarkThatIsOlderThanTheManifestMissesNoLogButTheNewest) {
  const fs::path copy = CopyOf(killed_);
  absl::StatusOr<FileMark> mark = ReadMark(*disk_.env(), copy);
  ASSERT_TRUE(mark.ok()) << mark.status();
  for (auto& [name, bytes] : *mark) {
    bytes -= name.starts_with("MANIFEST-") ? 1 : 0;
  }
  (*mark)["000001.log"] = 0;
  ASSERT_TRUE(WriteMark(*disk_.env(), copy, *mark).ok());
  const fs::path damaged = root_.path() / "damaged";
  fs::copy(copy, damaged, fs::copy_options::recursive);
  {
    const auto store = RocksDbStore::Open(copy);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(Writes(**store), kWrites);
  }
  fs::remove(damaged / NewestLog(damaged));
  EXPECT_TRUE(absl::IsDataLoss(RocksDbStore::Open(damaged).status()));
}

TEST_F(StoreDamageTest, AnOpeningThatEndsHalfWayIsNoDamage) {
  for (const bool former : {false, true}) {
    std::uint64_t stop = 0;
    for (bool stopped = true; stopped; ++stop) {
      SCOPED_TRACE(stop);
      const fs::path copy = CopyOf(closed_);
      if (former) {
        MakeFormerMark(copy);
      }
      fakes::FaultyFileSystem disk;
      disk.StopAfter(stop);
      static_cast<void>(RocksDbStore::Open(copy, {.env = disk.env()}));
      stopped = disk.changes() == stop;
      const auto store = RocksDbStore::Open(copy);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_EQ(Writes(**store), kWrites);
    }
    EXPECT_GT(stop, 10u);
  }
}

TEST_F(StoreDamageTest, WhatIsMarkedAtTheEndHasReachedTheDisk) {
  const fs::path folder = root_.path() / "lazy";
  {
    const auto store = RocksDbStore::Open(folder, {.env = disk_.env()});
    ASSERT_TRUE(store.ok()) << store.status();
    for (int write = 0; write < kWrites; ++write) {
      ASSERT_TRUE((*store)->WriteLogged({{Key(write), Value(write)}}).ok());
    }
  }
  disk_.LosePower(folder, root_.path() / "after");
  const auto store = RocksDbStore::Open(root_.path() / "after");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(Writes(**store), kWrites);
}

TEST_F(StoreDamageTest, AKilledStoreIsWholeWhereverItsLogsAreInTurn) {
  const fs::path folder = root_.path() / "busy";
  auto store = RocksDbStore::Open(folder, {.write_buffer_bytes = 64 << 10, .env = disk_.env()});
  ASSERT_TRUE(store.ok()) << store.status();
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds; ++round) {
    for (int write = 0; write < kWrites; ++write) {
      ASSERT_TRUE((*store)->WriteLogged({{Key(write), Value(write)}}).ok());
    }
    const fs::path killed = root_.path() / ("killed" + std::to_string(round));
    disk_.Copy(folder, killed);
    const fs::path damaged = CopyOf(killed);
    fs::remove(damaged / NewestLog(damaged));
    EXPECT_TRUE(absl::IsDataLoss(RocksDbStore::Open(damaged).status()));
    const auto again = RocksDbStore::Open(killed);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Writes(**again), kWrites);
    if (round % 3 == 2) {
      store->reset();
      store = RocksDbStore::Open(folder, {.write_buffer_bytes = 64 << 10, .env = disk_.env()});
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_EQ(Writes(**store), kWrites);
    }
  }
}

}  // namespace
}  // namespace adamant::storage
