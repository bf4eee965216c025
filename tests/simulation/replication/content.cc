#include "tests/simulation/replication/content.h"

#include <cstring>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"

namespace adamant::replication_simulation {
namespace {

void Put(std::string& bytes, std::uint64_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::uint64_t Take(std::string_view& bytes) {
  std::uint64_t value = 0;
  ADAMANT_CHECK(bytes.size() >= sizeof(value), "a part arrives whole");
  std::memcpy(&value, bytes.data(), sizeof(value));
  bytes.remove_prefix(sizeof(value));
  return value;
}

}  // namespace

void Apply(const ps::LoggedUpdate& update, ShardState& shard) {
  ++shard.updates;
  shard.hash = MixSeed(shard.hash, update.writer.slot, update.writer.incarnation, update.sequence);
  shard.writers[update.writer.slot] = {update.writer.incarnation, update.sequence};
}

std::shared_ptr<const std::string> Encode(const ShardState& shard) {
  auto bytes = std::make_shared<std::string>();
  Put(*bytes, shard.updates);
  Put(*bytes, shard.hash);
  Put(*bytes, shard.lsn);
  for (const auto& [slot, included] : shard.writers) {
    Put(*bytes, slot);
    Put(*bytes, included.incarnation);
    Put(*bytes, included.sequence);
  }
  return bytes;
}

ShardState Decode(std::string_view stored) {
  ShardState shard;
  shard.updates = Take(stored);
  shard.hash = Take(stored);
  shard.lsn = Take(stored);
  while (!stored.empty()) {
    const auto slot = static_cast<std::uint32_t>(Take(stored));
    Included& included = shard.writers[slot];
    included.incarnation = Take(stored);
    included.sequence = Take(stored);
  }
  return shard;
}

}  // namespace adamant::replication_simulation
