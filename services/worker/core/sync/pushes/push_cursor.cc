#include "services/worker/core/sync/pushes/push_cursor.h"

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::worker {
namespace {

/// Updates of one shard in flight while it catches up.
constexpr Sequence kMostInFlight = 8;

}  // namespace

void PushCursor::OnPlacement(const BucketPlacement& placement,
                             Sequence first_held,
                             std::uint64_t next_request) {
  if (server_ != placement.primary) {
    server_ = placement.primary;
    Reset(next_request);
  }
  if (placement.generation > generation_) {
    generation_ = placement.generation;
    OnRestored(first_held);
    Reset(next_request);
  }
}

void PushCursor::OnDisconnected(ServerSlot server, std::uint64_t next_request) {
  if (server_ == server) {
    Reset(next_request);
  }
}

void PushCursor::OnServed(Sequence sequence, const ShardAck& ack) {
  OnPersisted(ack.persisted);
  configuration_version_ = std::max(configuration_version_, ack.configuration_version);
  Acknowledge(sequence);
}

void PushCursor::OnRefused(Sequence sequence) {
  gone_.Insert(sequence, sequence + 1);
  Acknowledge(acknowledged_);
}

void PushCursor::OnPersisted(Sequence sequence) { persisted_ = std::max(persisted_, sequence); }

void PushCursor::Reset(std::uint64_t next_request) {
  sent_ = acknowledged_;
  since_ = next_request;
  skip_ = false;
}

// The server has all up to `sequence` that is not gone.
void PushCursor::Acknowledge(Sequence sequence) {
  acknowledged_ = gone_.FirstOutside(sequence + 1) - 1;
  sent_ = std::max(sent_, acknowledged_);
  most_ = std::max(most_, acknowledged_);
}

std::uint64_t PushCursor::Rewind(Sequence expected, Sequence first_held) {
  ADAMANT_FAILPOINT("push/rewind");
  std::uint64_t lost = 0;
  if (expected < first_held) {
    lost = gone_.Insert(expected, first_held);
  }
  Acknowledge(std::min<Sequence>(acknowledged_, expected - 1));
  return lost;
}

void PushCursor::SkipGone(Sequence expected) { skip_ = acknowledged_ >= expected; }

// The bucket came back from a disk, perhaps an older one: the newest acknowledged update is sent
// once more, and the answer says whether the server has it.
void PushCursor::OnRestored(Sequence first_held) {
  ADAMANT_FAILPOINT("push/restored");
  persisted_ = 0;
  for (Sequence sequence = acknowledged_; sequence >= first_held; --sequence) {
    if (!gone_.Contains(sequence)) {
      acknowledged_ = sequence - 1;
      break;
    }
  }
}

std::optional<PushCursor::Update> PushCursor::Send(ServerSlot server, Sequence last) {
  if (sent_ - acknowledged_ >= kMostInFlight) {
    return std::nullopt;
  }
  const Sequence next = gone_.FirstOutside(sent_ + 1);
  if (next > last) {
    return std::nullopt;
  }
  sent_ = next;
  server_ = server;
  return Update{.sequence = next, .after_loss = std::exchange(skip_, false)};
}

}  // namespace adamant::worker
