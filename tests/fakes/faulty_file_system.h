#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "services/common/base/rng.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace adamant::fakes {

class FaultyFiles;

/// The file system of this machine, failing on command. Stores take it as their env.
/// Must outlive the stores and their files.
/// Threads: any.
class FaultyFileSystem {
 public:
  FaultyFileSystem();
  ~FaultyFileSystem();

  [[nodiscard]] rocksdb::Env* env() const { return env_.get(); }

  /// While full, every byte written fails with "no space left".
  void SetFull(bool full);

  /// While on, every read or every write fails with an I/O error.
  void FailReads(bool on);
  void FailWrites(bool on);

  /// The next sync of a file fails, and, as on Linux, what was to be synced never becomes durable
  /// although later syncs succeed.
  void FailNextSync();

  /// One bit in the middle of every read from files with this ending is wrong; "": all is well.
  void FlipBitsIn(std::string ending);

  /// Called before every read, write and sync: to make the disk slow.
  void SetDelay(std::function<void()> delay);

  /// From the given number of further changes on (writes, syncs, new, renamed and deleted files)
  /// each fails and leaves the disk as it is.
  void StopAfter(std::uint64_t changes);

  /// Changes so far.
  [[nodiscard]] std::uint64_t changes() const;

  /// Copies `from` to the new folder `to`, with nothing changing meanwhile: what the death of the
  /// process would leave of it.
  void Copy(const std::filesystem::path& from, const std::filesystem::path& to) const;

  /// Makes the new folder `to` what a loss of power now would leave of `from`: see
  /// DurableFiles::Survive.
  void LosePower(const std::filesystem::path& from,
                 const std::filesystem::path& to,
                 Rng* rng = nullptr) const;

 private:
  const std::shared_ptr<FaultyFiles> files_;
  const std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace adamant::fakes
