// How fast the store takes shards and records, against what the disk can do.
//
//   build/release/bench/storage_bench [RUNS [GIGABYTES]]
//
// Each run, in a new folder under TMPDIR:
//   disk write, read   one file in 1 MB pieces from an aligned buffer with O_DIRECT: the yardstick
//   write-back         256 shards of 1 MB, rewritten round after round, flushed after each, until
//                      GIGABYTES (4) are written; two rounds before that warm up. What is merged or
//                      collected in the background is paid for by the rounds it slows down
//   random write-back  the same, but each round writes 64 shards drawn at random
//   amplification      bytes that the process sent to the disk during write-back, per byte given
//   space              bytes in the folder after write-back, per byte of live shards
//   recovery by n      opening the store and reading all shards with n threads, none of it in the
//                      page cache
//   server's recovery  from opening the same amount on a server's disk until it serves all of it
//   record             1 kB, written and synced
//   logged             1 MB, written so that it survives the process
// The medians of all runs are printed with minimum and maximum, and as a share of the disk's rate
// for writing in the same run.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"
#include "services/common/rpc/tune_malloc.h"
#include "services/common/storage/segments/segment_store.h"
#include "tests/bench/servers/server_recovery.h"

namespace adamant {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kShards = 256;
constexpr std::uint64_t kShardBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kDiskFileBytes = std::uint64_t{1} << 31;
constexpr double kGiga = 1e9;

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double BytesSentToDisk() {
  std::ifstream io("/proc/self/io");
  std::string name;
  double value = 0;
  while (io >> name >> value) {
    if (name == "write_bytes:") {
      return value;
    }
  }
  return 0;
}

class NewFolder {
 public:
  NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-bench-XXXXXX").string();
    ADAMANT_CHECK(mkdtemp(name.data()) != nullptr, "TMPDIR can be written");
    path_ = name;
  }
  ~NewFolder() { fs::remove_all(path_); }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void DropPageCache(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const int file = open(entry.path().c_str(), O_RDONLY);
    fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

std::uint64_t BytesIn(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat about {};
    if (stat(entry.path().c_str(), &about) == 0) {
      bytes += static_cast<std::uint64_t>(about.st_blocks) * 512;
    }
  }
  return bytes;
}

std::string RandomBytes(std::uint64_t bytes) {
  Rng rng(1);
  std::string value(bytes, '\0');
  for (char& c : value) {
    c = static_cast<char>(rng());
  }
  return value;
}

/// Results by name, in the order in which they came first.
using Results = std::vector<std::pair<std::string, double>>;

void MeasureDisk(const fs::path& folder, Results& results) {
  const fs::path path = folder / "disk";
  const std::string random = RandomBytes(kShardBytes);
  void* const buffer = std::aligned_alloc(4096, kShardBytes);
  std::memcpy(buffer, random.data(), kShardBytes);
  const int out = open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT, 0600);
  ADAMANT_CHECK(out >= 0, "the file system knows O_DIRECT");
  const double writing = SecondsOf([&] {
    for (std::uint64_t at = 0; at < kDiskFileBytes; at += kShardBytes) {
      ADAMANT_CHECK(pwrite(out, buffer, kShardBytes, static_cast<off_t>(at)) ==
                        static_cast<ssize_t>(kShardBytes),
                    "there is room");
    }
    fdatasync(out);
  });
  close(out);
  const int in = open(path.c_str(), O_RDONLY | O_DIRECT);
  const double reading = SecondsOf([&] {
    for (std::uint64_t at = 0; at < kDiskFileBytes; at += kShardBytes) {
      ADAMANT_CHECK(pread(in, buffer, kShardBytes, static_cast<off_t>(at)) ==
                        static_cast<ssize_t>(kShardBytes),
                    "what was written is there");
    }
  });
  close(in);
  std::free(buffer);
  fs::remove(path);
  results.emplace_back("disk write GB/s", static_cast<double>(kDiskFileBytes) / kGiga / writing);
  results.emplace_back("disk read GB/s", static_cast<double>(kDiskFileBytes) / kGiga / reading);
}

std::string ShardKey(std::uint64_t shard) { return "shard/" + std::to_string(1000 + shard); }

/// Writes whole rounds of shards and knows what it wrote last.
class Shards {
 public:
  explicit Shards(storage::KvStore& store) : store_(store) {}

  void WriteRound(std::uint64_t count,
                  const std::function<std::uint64_t(std::uint64_t)>& shard_of) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t shard = shard_of(i);
      const std::uint64_t stamp = ++version_;
      std::memcpy(value_.data(), &stamp, sizeof(stamp));
      versions_[shard] = stamp;
      const absl::Status written = store_.WriteLazily({{ShardKey(shard), value_}});
      ADAMANT_CHECK(written.ok(), "the store takes a shard");
    }
    const absl::Status flushed = store_.Flush();
    ADAMANT_CHECK(flushed.ok(), "the store flushes");
  }

  /// Reads every shard, with as many threads as asked for.
  void CheckAll(const storage::KvStore& store, std::uint64_t threads) const {
    std::vector<std::jthread> readers;
    for (std::uint64_t reader = 0; reader < threads; ++reader) {
      readers.emplace_back([this, &store, reader, threads] {
        for (const auto& [shard, version] : versions_) {
          if (shard % threads == reader) {
            Check(store.Get(ShardKey(shard)), version);
          }
        }
      });
    }
  }

 private:
  static void Check(const absl::StatusOr<std::string>& value, std::uint64_t version) {
    ADAMANT_CHECK(value.ok() && value->size() == kShardBytes &&
                      std::memcmp(value->data(), &version, sizeof(version)) == 0,
                  "the store has the latest of every shard");
  }

  storage::KvStore& store_;
  std::string value_ = RandomBytes(kShardBytes);
  std::uint64_t version_ = 0;
  std::map<std::uint64_t, std::uint64_t> versions_;
};

std::unique_ptr<storage::KvStore> OpenStore(const fs::path& folder) {
  auto store = storage::SegmentStore::Open(folder);
  ADAMANT_CHECK(store.ok(), "the store opens");
  return *std::move(store);
}

void MeasureWriteBack(const fs::path& folder, double gigabytes, bool random, Results& results) {
  const std::string name = random ? "random write-back" : "write-back";
  auto store = OpenStore(folder);
  Shards shards(*store);
  const auto every = [](std::uint64_t i) { return i; };
  Rng rng(2);
  const auto any = [&](std::uint64_t) { return rng.Below(kShards); };
  shards.WriteRound(kShards, every);
  shards.WriteRound(kShards, every);
  const std::uint64_t per_round = random ? kShards / 4 : kShards;
  double written = 0;
  const double cpu = CpuSeconds();
  const double sent = BytesSentToDisk();
  const double seconds = SecondsOf([&] {
    while (written < gigabytes * kGiga) {
      random ? shards.WriteRound(per_round, any) : shards.WriteRound(per_round, every);
      written += static_cast<double>(per_round * kShardBytes);
    }
  });
  const auto live = static_cast<double>(kShards * kShardBytes);
  results.emplace_back(name + " GB/s", written / kGiga / seconds);
  results.emplace_back(name + " CPU s/GB", (CpuSeconds() - cpu) / (written / kGiga));
  results.emplace_back(name + " amplification", (BytesSentToDisk() - sent) / written);
  results.emplace_back(name + " space", static_cast<double>(BytesIn(folder)) / live);
  store.reset();
  if (random) {
    return;
  }
  for (const std::uint64_t threads : {1, 2}) {
    store.reset();
    DropPageCache(folder);
    const double reading = SecondsOf([&] {
      store = OpenStore(folder);
      shards.CheckAll(*store, threads);
    });
    results.emplace_back("recovery by " + std::to_string(threads) + " GB/s",
                         live / kGiga / reading);
  }
}

void MeasureServer(const fs::path& folder, Results& results) {
  const double seconds =
      bench::SecondsOfServerRecovery(folder, kShards, [&folder] { DropPageCache(folder); });
  results.emplace_back("server's recovery GB/s",
                       static_cast<double>(kShards * kShardBytes) / kGiga / seconds);
}

void MeasureWrites(const fs::path& folder, Results& results) {
  const auto store = OpenStore(folder);
  constexpr int kRecords = 2000;
  const std::string record(1000, 'r');
  const double synced = SecondsOf([&] {
    for (int i = 0; i < kRecords; ++i) {
      ADAMANT_CHECK(store->Write({{"record/" + std::to_string(i), record}}).ok(), "it is written");
    }
  });
  results.emplace_back("record µs", synced / kRecords * 1e6);
  constexpr int kLogged = 512;
  const std::string entry = RandomBytes(kShardBytes);
  const double logged = SecondsOf([&] {
    for (int i = 0; i < kLogged; ++i) {
      ADAMANT_CHECK(store->WriteLogged({{"log/" + std::to_string(i), entry}}).ok(),
                    "it is written");
    }
  });
  results.emplace_back("logged GB/s", kLogged * static_cast<double>(kShardBytes) / kGiga / logged);
}

void Print(const std::vector<Results>& runs) {
  const auto share = [](const Results& run, std::size_t i) {
    return run[i].second / run[0].second;
  };
  std::printf("| | median | min–max | share of disk write |\n|---|---|---|---|\n");
  for (std::size_t i = 0; i < runs.front().size(); ++i) {
    std::vector<double> values;
    std::vector<double> shares;
    for (const Results& run : runs) {
      values.push_back(run[i].second);
      shares.push_back(share(run, i));
    }
    std::sort(values.begin(), values.end());
    std::sort(shares.begin(), shares.end());
    const std::string& name = runs.front()[i].first;
    std::printf("| %s | %.2f | %.2f–%.2f |",
                name.c_str(),
                values[values.size() / 2],
                values.front(),
                values.back());
    name.ends_with("GB/s")
        ? std::printf(
              " %.2f (%.2f–%.2f) |\n", shares[shares.size() / 2], shares.front(), shares.back())
        : std::printf(" |\n");
  }
}

void Run(int runs, double gigabytes) {
  rpc::TuneMalloc();  // as the services do
  std::vector<Results> results(static_cast<std::size_t>(std::max(runs, 1)));
  for (Results& run : results) {
    const NewFolder folder;
    MeasureDisk(folder.path(), run);
    MeasureWriteBack(folder.path() / "rounds", gigabytes, false, run);
    MeasureWriteBack(folder.path() / "random", gigabytes, true, run);
    MeasureServer(folder.path() / "server", run);
    MeasureWrites(folder.path() / "writes", run);
  }
  Print(results);
}

}  // namespace
}  // namespace adamant

int main(int argc, char** argv) {
  adamant::Run(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? std::atof(argv[2]) : 4);
  return 0;
}
