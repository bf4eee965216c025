#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <variant>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/base/rng.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// Parameter servers as a worker sees them, one shard to a bucket. What a primary answers is at all
/// members; of acknowledged updates some are on disks. Primaries are replaced, with or without
/// their knowledge; processes die; when all members of a bucket have, the best disk brings it back.
/// Threads: one.
class ModelServers {
 public:
  static constexpr ServerSlot kServers = 4;
  static constexpr ShardId kShards = 7;

  using Request = std::variant<PushMessage, FetchMessage, FlushMessage>;
  using Reply = std::variant<PushReply, FetchReply, FlushReply>;

  explicit ModelServers(Rng& rng) : rng_(rng) {
    for (Bucket& bucket : buckets_) {
      bucket.primary = AnyServer();
      bucket.members = {bucket.primary, AnyServer()};
    }
    for (ServerSlot server = 0; server < kServers; ++server) {
      Hear(server);
    }
  }

  // --- What happens

  /// Another member takes over; the primary does not know yet.
  void Depose(ShardId shard) {
    Bucket& bucket = buckets_[shard];
    if (bucket.members.size() > 1) {
      View& view = views_[bucket.primary][shard];
      if (view.version == bucket.version) {
        view.committed = Last(bucket.applied);
        view.head = view.committed;
      }
      bucket.members.erase(bucket.primary);
      bucket.primary = AnyOf(bucket.members);
      ++bucket.version;
    }
  }

  /// A server joins, or one that is not the primary leaves.
  void ChangeMembers(ShardId shard) {
    Bucket& bucket = buckets_[shard];
    const ServerSlot server = AnyServer();
    if (server == bucket.primary) {
      return;
    }
    ++bucket.version;
    if (bucket.members.erase(server) == 0) {
      bucket.members.insert(server);
    }
    Hear(bucket.primary);
    Hear(server);
  }

  /// These processes die, and with them those whose disks are to bring buckets back; they start
  /// anew, members of nothing else. Returns all that died.
  std::set<ServerSlot> Kill(std::set<ServerSlot> dying) {
    const auto lost = [&](const Bucket& bucket) {
      return std::ranges::includes(dying, bucket.members);
    };
    for (std::size_t before = 0; before != dying.size();) {
      before = dying.size();
      for (ShardId shard = 0; shard < kShards; ++shard) {
        if (lost(buckets_[shard])) {
          dying.insert(BestDisk(shard));
        }
      }
    }
    for (ShardId shard = 0; shard < kShards; ++shard) {
      Bucket& bucket = buckets_[shard];
      if (std::ranges::any_of(bucket.members,
                              [&](ServerSlot member) { return dying.contains(member); })) {
        ++bucket.version;
      }
      if (lost(bucket)) {
        Restore(shard);
        continue;
      }
      std::erase_if(bucket.members, [&](ServerSlot member) { return dying.contains(member); });
      bucket.primary = dying.contains(bucket.primary) ? AnyOf(bucket.members) : bucket.primary;
    }
    for (const ServerSlot server : dying) {
      pending_[server].clear();
      released_[server].clear();
      std::ranges::fill(views_[server], View{});
    }
    for (const Bucket& bucket : buckets_) {
      if (!dying.contains(bucket.primary)) {
        Hear(bucket.primary);  // it has proposed the change
      }
    }
    return dying;
  }

  /// A member writes to disk.
  void Flush(ServerSlot server, ShardId shard) {
    const Bucket& bucket = buckets_[shard];
    if (bucket.members.contains(server)) {
      disks_[server][shard] = {.generation = bucket.generation, .applied = bucket.applied};
    }
  }

  void LoseDisk(ServerSlot server, ShardId shard) { disks_[server][shard] = {}; }

  /// The server learns the placements of now. Answers that waited become refusals.
  void Hear(ServerSlot server) {
    for (ShardId shard = 0; shard < kShards; ++shard) {
      const Bucket& bucket = buckets_[shard];
      View& view = views_[server][shard];
      if (view.version != bucket.version) {
        view = {.version = bucket.version, .primary = bucket.primary == server};
      }
    }
    for (PushReply& reply : pending_[server]) {
      for (ShardAck& ack : reply.acks) {
        if (ack.outcome == kUndecided) {
          ack.outcome = PushOutcome::kNotPrimary;
          ack.configuration_version = views_[server][ack.shard].version;
        }
      }
      released_[server].emplace_back(std::move(reply));
    }
    pending_[server].clear();
  }

  // --- Messages

  /// Handles a request; replies, in the order in which they are sent, come from TakeReplies.
  void Handle(ServerSlot server, const Request& request) {
    if (const auto* push = std::get_if<PushMessage>(&request)) {
      HandlePush(server, *push);
    } else if (const auto* fetch = std::get_if<FetchMessage>(&request)) {
      HandleFetch(server, *fetch);
    } else {
      const auto& flush = std::get<FlushMessage>(request);
      FlushReply reply = {.request = flush.request};
      for (const ShardId shard : flush.shards) {
        Flush(server, shard);
        reply.persisted.push_back({.shard = shard, .sequence = Persisted(server, shard)});
      }
      released_[server].emplace_back(std::move(reply));
    }
  }

  std::deque<Reply> TakeReplies(ServerSlot server) { return std::exchange(released_[server], {}); }

  // --- What is

  [[nodiscard]] std::vector<BucketPlacement> Placements() const {
    std::vector<BucketPlacement> placements;
    for (const Bucket& bucket : buckets_) {
      placements.push_back(
          {.version = bucket.version, .generation = bucket.generation, .primary = bucket.primary});
    }
    return placements;
  }

  [[nodiscard]] const std::vector<Sequence>& applied(ShardId shard) const {
    return buckets_[shard].applied;
  }

  /// Updates that went with all members of their bucket.
  [[nodiscard]] std::uint64_t rolled_back() const { return rolled_back_; }

 private:
  static constexpr auto kUndecided = static_cast<PushOutcome>(-1);

  struct Bucket {
    ConfigurationVersion version = 1;
    std::uint64_t generation = 1;
    ServerSlot primary = 0;
    std::set<ServerSlot> members;
    std::vector<Sequence> applied;  // at all members
  };
  /// What a process knows of a bucket.
  struct View {
    ConfigurationVersion version = 0;
    bool primary = false;
    Sequence committed = 0;  // of a primary that was deposed: when it was
    Sequence head = 0;       // likewise: with what it has taken since, and cannot commit
  };
  struct Disk {
    std::uint64_t generation = 0;
    std::vector<Sequence> applied;
  };

  static Sequence Last(const std::vector<Sequence>& applied) {
    return applied.empty() ? Sequence(0) : applied.back();
  }

  ServerSlot AnyServer() { return static_cast<ServerSlot>(rng_.Below(kServers)); }

  ServerSlot AnyOf(const std::set<ServerSlot>& members) {
    auto member = members.begin();
    std::advance(member, rng_.Below(members.size()));
    return *member;
  }

  [[nodiscard]] ServerSlot BestDisk(ShardId shard) const {
    const auto rank = [&](ServerSlot server) {
      const Disk& disk = disks_[server][shard];
      return std::pair(disk.generation, disk.applied.size());
    };
    ServerSlot best = 0;
    for (ServerSlot server = 1; server < kServers; ++server) {
      best = rank(server) > rank(best) ? server : best;
    }
    return best;
  }

  void Restore(ShardId shard) {
    Bucket& bucket = buckets_[shard];
    const ServerSlot best = BestDisk(shard);
    Disk& disk = disks_[best][shard];
    rolled_back_ += bucket.applied.size() - disk.applied.size();
    disk.generation = ++bucket.generation;
    bucket.applied = disk.applied;
    bucket.primary = best;
    bucket.members = {best};
  }

  [[nodiscard]] Sequence Persisted(ServerSlot server, ShardId shard) const {
    const Disk& disk = disks_[server][shard];
    return disk.generation == buckets_[shard].generation ? Last(disk.applied) : Sequence(0);
  }

  void HandlePush(ServerSlot server, const PushMessage& push) {
    PushReply reply = {.request = push.request};
    bool decided = true;
    for (const ShardUpdate& update : push.updates) {
      ShardAck& ack = reply.acks.emplace_back();
      ack.shard = update.shard;
      ack.configuration_version = views_[server][update.shard].version;
      ack.outcome = Judge(server, push.sequence(), update, ack.expected);
      ack.persisted = Persisted(server, update.shard);
      decided &= ack.outcome != kUndecided;
    }
    if (decided) {
      released_[server].emplace_back(std::move(reply));
    } else {
      pending_[server].push_back(std::move(reply));
    }
  }

  PushOutcome Judge(ServerSlot server,
                    Sequence sequence,
                    const ShardUpdate& update,
                    Sequence& expected) {
    Bucket& bucket = buckets_[update.shard];
    View& view = views_[server][update.shard];
    if (!view.primary) {
      return PushOutcome::kNotPrimary;
    }
    if (rng_.Below(20) == 0) {
      return PushOutcome::kNotReady;
    }
    const bool deposed = view.version != bucket.version;
    const Sequence last = deposed ? view.head : Last(bucket.applied);
    if (sequence <= last) {
      return deposed && sequence > view.committed ? kUndecided : PushOutcome::kDuplicate;
    }
    if (sequence != last + 1 && !update.after_loss) {
      expected = last + 1;
      return PushOutcome::kUnexpectedSequence;
    }
    if (deposed) {
      view.head = sequence;
      return kUndecided;
    }
    bucket.applied.push_back(sequence);
    return PushOutcome::kApplied;
  }

  void HandleFetch(ServerSlot server, const FetchMessage& fetch) {
    FetchReply reply = {.request = fetch.request};
    for (const ShardId shard : fetch.shards) {
      FetchedShard& value = reply.shards.emplace_back();
      const View& view = views_[server][shard];
      value.shard = shard;
      value.configuration_version = view.version;
      if (!view.primary) {
        value.outcome = FetchOutcome::kNotPrimary;
      } else if (view.version != buckets_[shard].version) {
        value.outcome = FetchOutcome::kNotReady;
      } else {
        value.included_sequence = Last(buckets_[shard].applied);
        value.persisted = Persisted(server, shard);
      }
    }
    released_[server].emplace_back(std::move(reply));
  }

  Rng& rng_;
  Bucket buckets_[kShards];
  View views_[kServers][kShards];
  Disk disks_[kServers][kShards];
  std::vector<PushReply> pending_[kServers];
  std::deque<Reply> released_[kServers];
  std::uint64_t rolled_back_ = 0;
};

}  // namespace adamant::worker
