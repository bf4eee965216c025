#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "tests/conformance/kv_store_suite.h"
#include "tests/fakes/faulty_file_system.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::conformance {

/// A store of RocksDB files or segments on a faulty disk.
template <class Store, class Options>
class DiskStoreRig final : public KvStoreRig {
 public:
  explicit DiskStoreRig(const Options& options) : options_(options) { Open(); }
  ~DiskStoreRig() override { disk_.SetFull(false); }

  storage::KvStore& store() override { return *store_; }
  [[nodiscard]] bool LogsLazyWrites() const override {
    return std::is_same_v<Store, storage::RocksDbStore>;
  }

  void Crash() override {
    const std::filesystem::path copy = NextFolder();
    disk_.Copy(folder_, copy);
    Reopen(copy);
  }

  void LosePower() override {
    const std::filesystem::path copy = NextFolder();
    disk_.LosePower(folder_, copy);
    Reopen(copy);
  }

  void SetFull(bool full) override { disk_.SetFull(full); }
  void FailNextSync() override { disk_.FailNextSync(); }

  void Corrupt(const std::string& key) override {
    Reopen(folder_);  // so that RocksDB's log becomes a table
    const std::string text(1000, key[0]);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().extension() != ".sst" && entry.path().extension() != ".segment") {
        continue;
      }
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string content((std::istreambuf_iterator<char>(in)),
                                std::istreambuf_iterator<char>());
      if (const std::size_t at = content.find(text); at != std::string::npos) {
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(at) + 500);
        file.put('#');
        return;
      }
    }
    FAIL() << "no file has the value of " << key;
  }

 private:
  std::filesystem::path NextFolder() { return root_.path() / std::to_string(++generation_); }

  void Reopen(const std::filesystem::path& folder) {
    disk_.SetFull(false);
    store_.reset();
    folder_ = folder;
    Open();
  }

  void Open() {
    Options options = options_;
    options.env = disk_.env();
    auto store = Store::Open(folder_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  const Options options_;
  fakes::FaultyFileSystem disk_;
  const TestFolder root_;
  std::filesystem::path folder_ = root_.path() / "0";
  int generation_ = 0;
  std::unique_ptr<storage::KvStore> store_;
};

}  // namespace adamant::conformance
