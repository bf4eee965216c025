#include "tests/fakes/faulty_file_system.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "services/common/base/mutex.h"
#include "tests/fakes/durable_files.h"

namespace adamant::fakes {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

struct Commands {
  bool full = false;
  bool fail_reads = false;
  bool fail_writes = false;
  bool fail_sync = false;
  std::string flip_ending = {};
  std::function<void()> delay = nullptr;
  std::uint64_t stop_at = std::numeric_limits<std::uint64_t>::max();
};

/// What is to fail, and what has become durable.
class Disk {
 public:
  /// Calls `use` with the commands, the count of changes and the durable files.
  template <class Use>
  auto With(const Use& use) {
    MutexLock lock(mutex_);
    return use(commands_, changes_, files_);
  }

  /// Calls `change` with the durable files, unless the disk has stopped. One change at a time.
  template <class Change>
  IOStatus Apply(const Change& change) {
    Delay();
    MutexLock lock(mutex_);
    if (changes_ >= commands_.stop_at) {
      return IOStatus::IOError("the disk has stopped");
    }
    ++changes_;
    return change(files_);
  }

  template <class Change>
  IOStatus Write(const Change& change) {
    const auto [full, fails] = With([](const Commands& commands, std::uint64_t, auto&) {
      return std::pair(commands.full, commands.fail_writes);
    });
    if (full) {
      return IOStatus::NoSpace("no space left on device");
    }
    return fails ? IOStatus::IOError("write failed") : Apply(change);
  }

  template <class Read>
  IOStatus ReadFile(const std::string& path, Slice* result, char* scratch, const Read& read) {
    Delay();
    const auto [fails, flips] = With([&](const Commands& commands, std::uint64_t, auto&) {
      return std::pair(commands.fail_reads,
                       !commands.flip_ending.empty() && path.ends_with(commands.flip_ending));
    });
    IOStatus status = fails ? IOStatus::IOError("read failed") : read();
    if (status.ok() && flips && !result->empty()) {
      std::memmove(scratch, result->data(), result->size());
      char& victim = scratch[result->size() / 2];
      victim = static_cast<char>(victim ^ 1);
      *result = Slice(scratch, result->size());
    }
    return status;
  }

 private:
  void Delay() {
    const auto delay =
        With([](const Commands& commands, std::uint64_t, auto&) { return commands.delay; });
    if (delay != nullptr) {
      delay();
    }
  }

  Mutex mutex_;
  Commands commands_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  DurableFiles files_ ABSL_GUARDED_BY(mutex_);
};

class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile>&& file,
               std::shared_ptr<DurableFiles::Bytes> bytes,
               Disk& disk)
      : FSWritableFileOwnerWrapper(std::move(file)), bytes_(std::move(bytes)), disk_(disk) {}

  using FSWritableFileOwnerWrapper::Append;
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return disk_.Write([&](auto&) {
      return Grown(target()->Append(data, options, debug), bytes_->size + data.size());
    });
  }
  IOStatus Append(const Slice& data,
                  const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data,
                            std::uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* debug) override {
    return disk_.Write([&](auto&) {
      return Grown(target()->PositionedAppend(data, offset, options, debug),
                   std::max(bytes_->size, offset + data.size()));
    });
  }
  IOStatus PositionedAppend(const Slice& data,
                            std::uint64_t offset,
                            const IOOptions& options,
                            const rocksdb::DataVerificationInfo& /*verification*/,
                            IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    return disk_.Apply(
        [&](auto&) { return Grown(target()->Truncate(size, options, debug), size); });
  }
  // What power takes away is only pretended, so nothing need really be synced.
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    const bool fails = disk_.With([](Commands& commands, std::uint64_t, auto&) {
      return std::exchange(commands.fail_sync, false);
    });
    return disk_.Apply([&](auto&) {
      bytes_->lost = bytes_->lost || fails;
      if (!bytes_->lost) {
        bytes_->synced = bytes_->size;
      }
      return fails ? IOStatus::IOError("sync failed") : IOStatus::OK();
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  IOStatus RangeSync(std::uint64_t /*offset*/,
                     std::uint64_t /*bytes*/,
                     const IOOptions& /*options*/,
                     IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }

 private:
  IOStatus Grown(IOStatus status, std::uint64_t size) {
    if (status.ok()) {
      bytes_->size = size;
    }
    return status;
  }

  const std::shared_ptr<DurableFiles::Bytes> bytes_;
  Disk& disk_;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile>&& file,
                   std::string path,
                   Disk& disk)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), path_(std::move(path)), disk_(disk) {}

  IOStatus Read(std::uint64_t offset,
                std::size_t n,
                const IOOptions& options,
                Slice* result,
                char* scratch,
                IODebugContext* debug) const override {
    return disk_.ReadFile(path_, result, scratch, [&] {
      return target()->Read(offset, n, options, result, scratch, debug);
    });
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests,
                     std::size_t count,
                     const IOOptions& options,
                     IODebugContext* debug) override {
    for (rocksdb::FSReadRequest* at = requests; at != requests + count; ++at) {
      at->status = Read(at->offset, at->len, options, &at->result, at->scratch, debug);
    }
    return IOStatus::OK();
  }
  IOStatus Prefetch(std::uint64_t /*offset*/,
                    std::size_t /*n*/,
                    const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported();
  }

 private:
  const std::string path_;
  Disk& disk_;
};

class SequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  SequentialFile(std::unique_ptr<rocksdb::FSSequentialFile>&& file, std::string path, Disk& disk)
      : FSSequentialFileOwnerWrapper(std::move(file)), path_(std::move(path)), disk_(disk) {}

  IOStatus Read(std::size_t n,
                const IOOptions& options,
                Slice* result,
                char* scratch,
                IODebugContext* debug) override {
    return disk_.ReadFile(
        path_, result, scratch, [&] { return target()->Read(n, options, result, scratch, debug); });
  }

 private:
  const std::string path_;
  Disk& disk_;
};

class Folder final : public rocksdb::FSDirectoryWrapper {
 public:
  Folder(std::unique_ptr<rocksdb::FSDirectory>&& folder, std::string path, Disk& disk)
      : FSDirectoryWrapper(std::move(folder)), path_(std::move(path)), disk_(disk) {}

  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return disk_.Apply([&](DurableFiles& files) {
      files.SyncFolder(path_);
      return IOStatus::OK();
    });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options,
                               IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& /*reason*/) override {
    return Fsync(options, debug);
  }

 private:
  const std::string path_;
  Disk& disk_;
};

}  // namespace

class FaultyFiles final : public rocksdb::FileSystemWrapper {
 public:
  FaultyFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  Disk& disk() { return disk_; }

  [[nodiscard]] const char* Name() const override { return "FaultyFiles"; }

  IOStatus NewWritableFile(const std::string& name,
                           const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    return disk_.Apply([&](DurableFiles& files) {
      auto bytes = files.Create(name);
      IOStatus status = target()->NewWritableFile(name, options, result, debug);
      if (status.ok()) {
        *result = std::make_unique<WritableFile>(std::move(*result), std::move(bytes), disk_);
      }
      return status;
    });
  }
  IOStatus ReuseWritableFile(const std::string& name,
                             const std::string& old_name,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result,
                             IODebugContext* debug) override {
    return disk_.Apply([&](DurableFiles& files) {
      IOStatus status = target()->ReuseWritableFile(name, old_name, options, result, debug);
      if (status.ok()) {
        *result =
            std::make_unique<WritableFile>(std::move(*result), files.Reuse(old_name, name), disk_);
      }
      return status;
    });
  }
  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext* debug) override {
    IOStatus status = target()->NewRandomAccessFile(name, options, result, debug);
    if (status.ok()) {
      *result = std::make_unique<RandomAccessFile>(std::move(*result), name, disk_);
    }
    return status;
  }
  IOStatus NewSequentialFile(const std::string& name,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* debug) override {
    IOStatus status = target()->NewSequentialFile(name, options, result, debug);
    if (status.ok()) {
      *result = std::make_unique<SequentialFile>(std::move(*result), name, disk_);
    }
    return status;
  }
  IOStatus NewDirectory(const std::string& name,
                        const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result,
                        IODebugContext* debug) override {
    IOStatus status = target()->NewDirectory(name, options, result, debug);
    if (status.ok()) {
      *result = std::make_unique<Folder>(std::move(*result), name, disk_);
    }
    return status;
  }
  IOStatus RenameFile(const std::string& from,
                      const std::string& to,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    return disk_.Apply([&](DurableFiles& files) {
      files.Rename(from, to);  // notes what `to` was, so it comes first
      return target()->RenameFile(from, to, options, debug);
    });
  }
  IOStatus DeleteFile(const std::string& name,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    return disk_.Apply([&](DurableFiles& files) {
      files.Delete(name);
      return target()->DeleteFile(name, options, debug);
    });
  }

 private:
  Disk disk_;
};

FaultyFileSystem::FaultyFileSystem()
    : files_(std::make_shared<FaultyFiles>()), env_(rocksdb::NewCompositeEnv(files_)) {}

FaultyFileSystem::~FaultyFileSystem() = default;

void FaultyFileSystem::SetFull(bool full) {
  files_->disk().With([&](Commands& commands, auto, auto&) { commands.full = full; });
}

void FaultyFileSystem::FailReads(bool on) {
  files_->disk().With([&](Commands& commands, auto, auto&) { commands.fail_reads = on; });
}

void FaultyFileSystem::FailWrites(bool on) {
  files_->disk().With([&](Commands& commands, auto, auto&) { commands.fail_writes = on; });
}

void FaultyFileSystem::FailNextSync() {
  files_->disk().With([&](Commands& commands, auto, auto&) { commands.fail_sync = true; });
}

void FaultyFileSystem::FlipBitsIn(std::string ending) {
  files_->disk().With(
      [&](Commands& commands, auto, auto&) { commands.flip_ending = std::move(ending); });
}

void FaultyFileSystem::SetDelay(std::function<void()> delay) {
  files_->disk().With([&](Commands& commands, auto, auto&) { commands.delay = std::move(delay); });
}

void FaultyFileSystem::StopAfter(std::uint64_t changes) {
  files_->disk().With([&](Commands& commands, std::uint64_t so_far, auto&) {
    commands.stop_at = so_far + changes;
  });
}

std::uint64_t FaultyFileSystem::changes() const {
  return files_->disk().With([](auto&, std::uint64_t changes, auto&) { return changes; });
}

void FaultyFileSystem::Copy(const std::filesystem::path& from,
                            const std::filesystem::path& to) const {
  files_->disk().With([&](auto&, auto, auto&) {
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  });
}

void FaultyFileSystem::LosePower(const std::filesystem::path& from,
                                 const std::filesystem::path& to,
                                 Rng* rng) const {
  files_->disk().With([&](auto&, auto, DurableFiles& files) { files.Survive(from, to, rng); });
}

}  // namespace adamant::fakes
