#include "tests/simulation/replication/processes/writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/simulation/replication/processes/cluster.h"

namespace adamant::replication_simulation {
namespace {

constexpr auto kAskAgain = milliseconds(400);

LifePtr NewWriterLife(std::uint32_t slot, Incarnation incarnation) {
  auto life = std::make_shared<Life>();
  life->name = "writer-" + std::to_string(slot) + "#" + std::to_string(incarnation);
  return life;
}

bool IsDone(const PushAnswer::Ack& ack) {
  return ack.outcome == ps::PushOutcome::kApplied || ack.outcome == ps::PushOutcome::kDuplicate;
}

bool IsUnexpected(const PushAnswer::Ack& ack) {
  return ack.outcome == ps::PushOutcome::kUnexpectedSequence;
}

}  // namespace

Writer::Writer(World& world, Cluster& cluster, std::uint32_t slot, Incarnation incarnation)
    : life(NewWriterLife(slot, incarnation)),
      world_(world),
      cluster_(cluster),
      self_{.slot = slot, .incarnation = incarnation},
      streams_(world.setup.buckets) {
  for (BucketId bucket = 0; bucket < streams_.size(); ++bucket) {
    for (const ShardId shard : world_.setup.shards_of[bucket]) {
      streams_[bucket].next[shard] = 1;
    }
    PlanBegin(bucket);
  }
}

void Writer::PlanBegin(BucketId bucket) {
  world_.scheduler.After(world_.scheduler.Random(milliseconds(1), 2 * world_.setup.think_time),
                         life,
                         [this, bucket] { Begin(bucket); });
}

void Writer::Pause(bool paused) {
  paused_ = paused;
  for (BucketId bucket = 0; !paused && bucket < streams_.size(); ++bucket) {
    if (std::exchange(streams_[bucket].full, false)) {
      PlanBegin(bucket);
    }
  }
}

bool Writer::IsAtRest() const {
  return std::ranges::all_of(streams_, [](const Stream& each) { return each.pending.empty(); });
}

void Writer::Begin(BucketId bucket) {
  Stream& stream = streams_[bucket];
  if (stopped_) {
    return;
  }
  if (paused_ || stream.pending.size() >= world_.setup.in_flight) {
    stream.full = true;
    return;
  }
  Push push{.id = cluster_.NextRequest(),
            .attempt = cluster_.attempt(),
            .writer = self_,
            .bucket = bucket,
            .updates = {}};
  for (auto& [shard, next] : stream.next) {
    if (push.updates.empty() || world_.scheduler.Chance(0.7)) {
      push.updates.push_back({shard, next++});
    }
  }
  const std::uint64_t id = push.id;
  stream.pending.emplace(id, std::move(push));
  Ask(bucket, id);
  PlanBegin(bucket);
}

void Writer::Ask(BucketId bucket, std::uint64_t id) {
  Stream& stream = streams_[bucket];
  const auto pending = stream.pending.find(id);
  if (pending == stream.pending.end()) {
    return;
  }
  cluster_.SendPush(*this, stream.target, pending->second);
  world_.scheduler.After(kAskAgain, life, [this, bucket, id] {
    if (streams_[bucket].pending.contains(id)) {
      streams_[bucket].target = cluster_.GuessPrimary(bucket);
      Ask(bucket, id);
    }
  });
}

void Writer::OnAnswer(const PushAnswer& answer) {
  Stream& stream = streams_[answer.bucket];
  if (!stream.pending.contains(answer.id)) {
    return;
  }
  if (std::ranges::all_of(answer.acks, IsDone)) {
    stream.pending.erase(answer.id);
  } else if (std::ranges::any_of(answer.acks, [&](const PushAnswer::Ack& ack) {
               return IsUnexpected(ack) && !IsUnderWay(stream, ack);
             })) {
    GoBack(stream, answer);
  } else {
    return;  // is asked again
  }
  if (world_.scheduler.Chance(0.2)) {
    cluster_.SendFetch(*this, stream.target, {.writer = self_, .bucket = answer.bucket});
  }
  if (std::exchange(stream.full, false)) {
    PlanBegin(answer.bucket);
  }
}

// What the server waits for is in another push.
bool Writer::IsUnderWay(const Stream& stream, const PushAnswer::Ack& ack) {
  return std::ranges::any_of(stream.pending, [&](const auto& pending) {
    return std::ranges::any_of(pending.second.updates, [&](const Push::Update& update) {
      return update.shard == ack.shard && update.sequence == ack.expected;
    });
  });
}

// What the bucket does not have is sent again: after a total loss also what was acknowledged.
void Writer::GoBack(Stream& stream, const PushAnswer& answer) {
  for (const auto& [id, push] : std::exchange(stream.pending, {})) {
    for (const Push::Update& update : push.updates) {
      Sequence& next = stream.next[update.shard];
      next = std::min(next, update.sequence);
    }
  }
  for (const PushAnswer::Ack& ack : answer.acks) {
    Sequence& next = stream.next[ack.shard];
    if (IsUnexpected(ack)) {
      next = std::min<Sequence>(next, ack.expected);
    } else if (IsDone(ack) && next == ack.sequence) {
      ++next;
    }
  }
}

}  // namespace adamant::replication_simulation
