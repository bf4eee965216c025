#include "tests/simulation/replication/disk.h"

#include <string>
#include <string_view>

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

std::vector<storage::Change> Disk::Seen(std::vector<storage::Change> changes) const {
  if (on_write) {
    on_write(changes);
  }
  return changes;
}

}  // namespace adamant::replication_simulation
