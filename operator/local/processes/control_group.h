#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace adamant::local {

/// The memory that this process and its children may have: that of its control group (version 2)
/// and of the groups above it, and that of the machine.
/// Threads: any.
class ControlGroup {
 public:
  /// `root` has the system's folders `proc` and `sys`.
  explicit ControlGroup(const std::filesystem::path& root = "/");

  /// Processes of the group that the kernel has killed so far as memory ran out (`oom_kill` of
  /// memory.events); of the whole machine where there is no such group. 0: not known.
  [[nodiscard]] std::uint64_t OomKills() const;

  /// Bytes that can be had: what is left in the group that leaves least, and on the machine at
  /// most. File content that is cached only counts as free. nullopt: not known.
  [[nodiscard]] std::optional<std::uint64_t> FreeMemory() const;

 private:
  std::filesystem::path proc_;
  std::vector<std::filesystem::path> groups_;  // the own one first, each with those above it
};

/// Counts the kills that no process is told to have died of.
/// Threads: one.
class OomKillCounter {
 public:
  explicit OomKillCounter(const std::filesystem::path& root = "/")
      : group_(root), told_(group_.OomKills()) {}

  /// Returns whether there was one more; it is told by this.
  bool TakeOne();

 private:
  const ControlGroup group_;
  std::uint64_t told_;
};

}  // namespace adamant::local
