#include "tests/simulation/replication/world/disk.h"

#include <string>
#include <string_view>

#include "services/common/base/status_macros.h"

namespace adamant::replication_simulation {

void Disk::FlipBit(Rng& rng) {
  std::vector<std::string> keys;
  for (const std::string_view prefix : {"shard/", "log/"}) {
    // It ends early behind another bit that has flipped.
    Scan(prefix, [&](std::string_view key, std::string_view /*value*/) {
      keys.emplace_back(key);
      return true;
    }).IgnoreError();
  }
  if (!keys.empty()) {
    store().Corrupt(keys[rng.Below(keys.size())]);
    has_lied_ = true;
  }
}

// --- As a process has it

absl::Status Volume::Attached() const {
  return attached_ ? absl::OkStatus() : absl::UnavailableError("the volume is attached elsewhere");
}

std::vector<storage::Change> Volume::Seen(std::vector<storage::Change> changes) const {
  on_write_(changes);
  return changes;
}

absl::StatusOr<std::string> Volume::Get(std::string_view key) const {
  ADAMANT_RETURN_IF_ERROR(Attached());
  return disk_.Get(key);
}

absl::Status Volume::Write(const std::vector<storage::Change>& changes) {
  ADAMANT_RETURN_IF_ERROR(Attached());
  return disk_.Write(Seen(changes));
}

absl::Status Volume::WriteLogged(const std::vector<storage::Change>& changes) {
  ADAMANT_RETURN_IF_ERROR(Attached());
  return disk_.WriteLogged(Seen(changes));
}

absl::Status Volume::WriteLazily(const std::vector<storage::Change>& changes) {
  ADAMANT_RETURN_IF_ERROR(Attached());
  return disk_.WriteLazily(Seen(changes));
}

absl::Status Volume::Flush() {
  ADAMANT_RETURN_IF_ERROR(Attached());
  return disk_.Flush();
}

absl::Status Volume::Scan(
    std::string_view prefix,
    const std::function<bool(std::string_view key, std::string_view value)>& visit) const {
  ADAMANT_RETURN_IF_ERROR(Attached());
  return disk_.Scan(prefix, visit);
}

}  // namespace adamant::replication_simulation
