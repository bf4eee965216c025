#include "operator/local/processes/control_group.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace adamant::local {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// The number behind a name at the beginning of a line, as in "oom_kill 3".
std::optional<std::uint64_t> EntryOf(const std::filesystem::path& file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string word; lines >> word;) {
    if (std::uint64_t number = 0; word == name && lines >> number) {
      return number;
    }
    lines.clear();
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

/// The number in a file of one; kNoLimit for "max".
std::optional<std::uint64_t> ContentOf(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (std::uint64_t number = 0; stream >> number) {
    return number;
  }
  stream.clear();
  std::string word;
  return stream >> word && word == "max" ? std::optional(kNoLimit) : std::nullopt;
}

/// Where version 2 has the group of this process below its topmost one; "" if it is in none.
std::string GroupIn(const std::filesystem::path& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) {
      return line.substr(4);
    }
  }
  return "";
}

std::uint64_t LeftIn(const std::filesystem::path& group) {
  const std::optional<std::uint64_t> most = ContentOf(group / "memory.max");
  const std::optional<std::uint64_t> used = ContentOf(group / "memory.current");
  if (!most || !used || *most == kNoLimit) {
    return kNoLimit;
  }
  const std::uint64_t cached = EntryOf(group / "memory.stat", "active_file").value_or(0) +
                               EntryOf(group / "memory.stat", "inactive_file").value_or(0);
  const std::uint64_t held = *used - std::min(*used, cached);
  return *most - std::min(*most, held);
}

}  // namespace

ControlGroup::ControlGroup(const std::filesystem::path& root) : proc_(root / "proc") {
  const std::filesystem::path top = root / "sys/fs/cgroup";
  std::filesystem::path group = top / GroupIn(proc_ / "self/cgroup");
  if (!group.has_filename()) {
    group = group.parent_path();
  }
  // In a namespace of its own a container's group is the topmost that it sees.
  for (std::error_code error; std::filesystem::exists(group / "memory.events", error);) {
    groups_.push_back(group);
    if (group == top) {
      break;
    }
    group = group.parent_path();
  }
}

std::uint64_t ControlGroup::OomKills() const {
  return (groups_.empty() ? EntryOf(proc_ / "vmstat", "oom_kill")
                          : EntryOf(groups_.front() / "memory.events", "oom_kill"))
      .value_or(0);
}

std::optional<std::uint64_t> ControlGroup::FreeMemory() const {
  std::uint64_t left = kNoLimit;
  if (const auto kilobytes = EntryOf(proc_ / "meminfo", "MemAvailable:")) {
    left = *kilobytes << 10;
  }
  for (const std::filesystem::path& group : groups_) {
    left = std::min(left, LeftIn(group));
  }
  return left == kNoLimit ? std::nullopt : std::optional(left);
}

bool OomKillCounter::TakeOne() {
  const bool more = group_.OomKills() > told_;
  told_ += more ? 1 : 0;
  return more;
}

}  // namespace adamant::local
