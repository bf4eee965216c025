// How fast the store takes shards and records.
//
//   build/release/bench/storage_bench --benchmark_repetitions=5
//
// "Shards": 1 MB values over 64 keys written lazily, flushed after every 64, as a parameter server
// does; time includes the flushes. "Record": one small value, written and synced. The folder is on
// the file system of TMPDIR.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/storage/rocksdb_store.h"

namespace adamant {
namespace {

namespace fs = std::filesystem;

class StoreInNewFolder {
 public:
  StoreInNewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-bench-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    store_ = storage::RocksDbStore::Open(folder_ / "store").value();
  }
  ~StoreInNewFolder() {
    store_.reset();
    fs::remove_all(folder_);
  }
  storage::KvStore& operator*() { return *store_; }

 private:
  fs::path folder_;
  std::unique_ptr<storage::KvStore> store_;
};

void Shards(benchmark::State& state) {
  constexpr int kShards = 64;
  constexpr std::size_t kShardBytes = std::size_t{1} << 20;
  StoreInNewFolder store;
  Rng rng(1);
  std::string value(kShardBytes, '\0');
  for (char& c : value) {
    c = static_cast<char>(rng());
  }
  for (auto _ : state) {
    for (int shard = 0; shard < kShards; ++shard) {
      if (!(*store).WriteLazily({{"shard/" + std::to_string(shard), value}}).ok()) {
        state.SkipWithError("cannot write");
      }
    }
    if (!(*store).Flush().ok()) {
      state.SkipWithError("cannot flush");
    }
  }
  state.SetBytesProcessed(state.iterations() * kShards * static_cast<std::int64_t>(kShardBytes));
}

void Record(benchmark::State& state) {
  StoreInNewFolder store;
  const std::string value(1000, 'r');
  for (auto _ : state) {
    if (!(*store).Write({{"record", value}}).ok()) {
      state.SkipWithError("cannot write");
    }
  }
}

BENCHMARK(Shards)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Record)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace adamant

BENCHMARK_MAIN();
