#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/parameter_server/core/replication/messages.h"

namespace adamant::replication_simulation {

namespace ps = parameter_server;

/// What of a writer a shard includes.
struct Included {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;

  bool operator==(const Included&) const = default;
};

/// One shard: how many updates it has, a hash of them in their order, and whose they are.
struct ShardState {
  std::uint64_t updates = 0;
  std::uint64_t hash = 0;
  ps::Lsn lsn = 0;  ///< of the last entry that it has met
  std::map<std::uint32_t, Included> writers;

  bool operator==(const ShardState&) const = default;
};

/// Applies one update, whatever it is.
void Apply(const ps::LoggedUpdate& update, ShardState& shard);

std::shared_ptr<const std::string> Encode(const ShardState& shard);
ShardState Decode(std::string_view stored);

/// All of a bucket that a server holds.
struct Content {
  std::uint64_t generation = 0;
  std::vector<ShardState> shards;
};

/// Applies the updates of an entry that the shards have not met, telling `applied` of each.
template <class Applied>
void Advance(Content& content, const ps::Entry& entry, Applied applied) {
  for (const ps::LoggedUpdate& update : entry.updates) {
    if (ShardState& shard = content.shards[update.shard]; entry.lsn > shard.lsn) {
      Apply(update, shard);
      applied(update, shard);
    }
  }
  for (ShardState& shard : content.shards) {
    shard.lsn = std::max(shard.lsn, entry.lsn);
  }
}

/// What a writer sends to a bucket, again and again until it is answered.
struct Push {
  std::uint64_t id = 0;  ///< never used twice
  ps::Writer writer;
  std::uint32_t bucket = 0;
  struct Update {
    std::uint32_t shard = 0;
    std::uint64_t sequence = 0;
  };
  std::vector<Update> updates;
};

struct PushAnswer {
  std::uint64_t id = 0;
  std::uint32_t bucket = 0;
  bool primary = false;  ///< else ask another, later
  bool stale = false;    ///< a newer process of the writer has been here
  struct Ack {
    std::uint32_t shard = 0;
    std::uint64_t sequence = 0;  ///< that was pushed
    std::uint64_t expected = 0;  ///< the next one
  };
  std::vector<Ack> acks;
};

}  // namespace adamant::replication_simulation
