#include "tests/simulation/replication/writer.h"

#include <string>

#include "tests/simulation/replication/cluster.h"

namespace adamant::replication_simulation {
namespace {

constexpr auto kAskAgain = milliseconds(400);

LifePtr NewLife(std::uint32_t slot, std::uint64_t incarnation) {
  auto life = std::make_shared<Life>();
  life->name = "writer-" + std::to_string(slot) + "#" + std::to_string(incarnation);
  return life;
}

}  // namespace

Writer::Writer(World& world, Cluster& cluster, std::uint32_t slot, std::uint64_t incarnation)
    : life(NewLife(slot, incarnation)),
      world_(world),
      cluster_(cluster),
      self_{.slot = slot, .incarnation = incarnation},
      streams_(world.setup.buckets) {
  for (std::uint32_t bucket = 0; bucket < streams_.size(); ++bucket) {
    streams_[bucket].next.assign(world_.setup.shards, 1);
    PlanBegin(bucket);
  }
}

void Writer::PlanBegin(std::uint32_t bucket) {
  world_.scheduler.After(world_.scheduler.Random(milliseconds(1), 2 * world_.setup.think_time),
                         life,
                         [this, bucket] { Begin(bucket); });
}

void Writer::Begin(std::uint32_t bucket) {
  if (stopped_) {
    return;
  }
  Stream& stream = streams_[bucket];
  Push push{.id = cluster_.NextPush(), .writer = self_, .bucket = bucket, .updates = {}};
  for (std::uint32_t shard = 0; shard < world_.setup.shards; ++shard) {
    if (shard == 0 || world_.scheduler.Chance(0.7)) {
      push.updates.push_back({shard, stream.next[shard]});
    }
  }
  stream.pending = std::move(push);
  Ask(bucket);
}

void Writer::Ask(std::uint32_t bucket) {
  Stream& stream = streams_[bucket];
  cluster_.SendPush(*this, self_.slot, stream.target, *stream.pending);
  world_.scheduler.After(kAskAgain, life, [this, bucket, id = stream.pending->id] {
    Stream& same = streams_[bucket];
    if (same.pending.has_value() && same.pending->id == id) {
      same.target = cluster_.GuessPrimary(bucket);
      Ask(bucket);
    }
  });
}

// What the bucket does not have is sent again: after a total loss also what was acknowledged.
void Writer::OnAnswer(const PushAnswer& answer) {
  Stream& stream = streams_[answer.bucket];
  if (!stream.pending.has_value() || stream.pending->id != answer.id || !answer.primary) {
    return;
  }
  for (const PushAnswer::Ack& ack : answer.acks) {
    stream.next[ack.shard] = ack.expected;
  }
  stream.pending.reset();
  PlanBegin(answer.bucket);
}

}  // namespace adamant::replication_simulation
