#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "services/common/base/rng.h"

namespace adamant::fakes {

/// Which bytes and names of a folder's files would survive a loss of power, by the rules of POSIX
/// at their harshest: bytes once their file was synced, new names and renames once their folder
/// was. Deletions count at once. Files that were there before count as safe.
/// Threads: one.
class DurableFiles {
 public:
  /// The bytes of one file, whatever its name.
  struct Bytes {
    std::uint64_t size = 0;
    std::uint64_t synced = 0;  ///< of them, from the start
    bool lost = false;         ///< a sync failed: no later one makes anything durable
  };

  std::shared_ptr<Bytes> Create(const std::string& path);
  void Rename(const std::string& from, const std::string& to);
  /// `from` is renamed, and then written from the start.
  std::shared_ptr<Bytes> Reuse(const std::string& from, const std::string& to);
  void Delete(const std::string& path) { names_.erase(path); }
  void SyncFolder(const std::string& folder);

  /// Makes `to` what is left of `from`. Without `rng` nothing that was not synced survives; with
  /// it, of each file a random part of the unsynced bytes, and all new names or none.
  void Survive(const std::filesystem::path& from, const std::filesystem::path& to, Rng* rng) const;

 private:
  struct Name {
    std::shared_ptr<Bytes> bytes;  ///< null: safe
    bool durable = false;
    std::optional<std::string> before = std::nullopt;  ///< what had this name in the synced folder
  };
  [[nodiscard]] std::optional<std::string> DurableContent(const std::string& path) const;

  std::map<std::string, Name> names_;
};

}  // namespace adamant::fakes
