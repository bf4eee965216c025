#include "tests/simulation/replication/world/inside.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "services/common/base/clock.h"
#include "tests/simulation/engine/aimed_faults.h"

namespace adamant::replication_simulation {
namespace {

/// Makes Member(Tag) give the pointer to a private member.
template <class Tag, typename Tag::Type kReplica>
struct Door {
  friend typename Tag::Type Member(Tag /*tag*/) { return kReplica; }
};

struct Table {
  using Type = ps::BucketTable ps::ParameterServer::*;
  friend Type Member(Table tag);
};
struct Effects {
  using Type = ps::ReplicationEffects ps::ParameterServer::*;
  friend Type Member(Effects tag);
};
struct Buckets {
  using Type = std::vector<std::unique_ptr<ps::Bucket>> ps::BucketTable::*;
  friend Type Member(Buckets tag);
};
struct Options {
  using Type = const ps::Replica::Options ps::Replica::*;
  friend Type Member(Options tag);
};
struct Content {
  using Type = ps::ShardContent ps::LiveShard::*;
  friend Type Member(Content tag);
};
struct Queue {
  using Type = std::vector<ps::CommittedUpdate> ps::LiveShard::*;
  friend Type Member(Queue tag);
};
struct Rule {
  using Type = const ps::ShardRule ps::LiveShard::*;
  friend Type Member(Rule tag);
};
struct Local {
  using Type = ps::LocalCopy ps::Replica::*;
  friend Type Member(Local tag);
};

template struct Door<Table, &ps::ParameterServer::table_>;
template struct Door<Effects, &ps::ParameterServer::effects_>;
template struct Door<Buckets, &ps::BucketTable::buckets_>;
template struct Door<Options, &ps::Replica::options_>;
template struct Door<Content, &ps::LiveShard::content_>;
template struct Door<Queue, &ps::LiveShard::queue_>;
template struct Door<Rule, &ps::LiveShard::rule_>;
template struct Door<Local, &ps::Replica::local_>;

/// For shards that are looked at once.
class StillClock final : public Clock {
 public:
  [[nodiscard]] TimePoint Now() const override { return {}; }
  [[nodiscard]] std::chrono::system_clock::time_point WallNow() const override { return {}; }
};

}  // namespace

ps::Bucket& BucketAt(ps::ParameterServer& server, BucketId bucket) {
  return *((server.*Member(Table{})).*Member(Buckets{}))[bucket];
}

const ps::Bucket& BucketAt(const ps::ParameterServer& server, BucketId bucket) {
  return *((server.*Member(Table{})).*Member(Buckets{}))[bucket];
}

ps::ShardContent ContentOf(const ps::LiveShard& shard) {
  const std::vector<ps::CommittedUpdate>& queue = shard.*Member(Queue{});
  if (queue.empty()) {
    return shard.*Member(Content{});
  }
  const simulation::StepsIgnored for_a_checker;
  const StillClock clock;
  ps::DirtyShards dirty({}, clock, [] {});
  ps::LiveShard copy(shard.identity(), shard.*Member(Rule{}), shard.*Member(Content{}), dirty);
  for (const ps::CommittedUpdate& update : queue) {
    copy.Enqueue({.entry = update.entry, .update = update.update});
  }
  copy.Drain();
  return std::move(copy.*Member(Content{}));
}

std::uint64_t VersionOf(const ps::LiveShard& shard) {
  return (shard.*Member(Queue{})).empty() ? (shard.*Member(Content{})).version
                                          : ContentOf(shard).version;
}

ps::ReplicaHost& HostOf(ps::ParameterServer& server) { return server.*Member(Effects{}); }

void Interpose(ps::ParameterServer& server, ps::ReplicaHost& host) {
  std::vector<std::unique_ptr<ps::Bucket>>& buckets = (server.*Member(Table{})).*Member(Buckets{});
  for (BucketId id = 0; id < buckets.size(); ++id) {
    const auto shards = std::ranges::count(server.layout().shards(), id, &Shard::bucket);
    const ps::Replica::Options& options = buckets[id]->replica().*Member(Options{});
    buckets[id] = std::make_unique<ps::Bucket>(std::make_unique<ps::Replica>(id, options, host),
                                               static_cast<std::size_t>(shards));
  }
}

void CutLog(ps::Replica& replica) {
  (replica.*Member(Local{})).log().CutFrom(replica.log().committed() + 1);
}

}  // namespace adamant::replication_simulation
