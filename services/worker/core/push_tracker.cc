#include "services/worker/core/push_tracker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

absl::Status Broken(ShardId shard, const std::string& what) {
  return absl::InternalError("the parameter server's reply for shard " + std::to_string(shard) +
                             " " + what);
}

}  // namespace

PushTracker::PushTracker(PushTrackerOptions options, const ShardLayout& layout, Routes& routes)
    : options_(std::move(options)),
      layout_(layout),
      routes_(routes),
      position_of_(layout.shards().size(), -1),
      cursors_(options_.pushed.size()),
      fetched_version_(layout.shards().size(), 0) {
  ADAMANT_CHECK(options_.max_pushes >= 1, "a push must be able to start");
  for (std::size_t position = 0; position < options_.pushed.size(); ++position) {
    position_of_[options_.pushed[position].shard] = static_cast<std::int64_t>(position);
  }
}

bool PushTracker::Idle() const {
  return retired_ == last_ && std::ranges::all_of(cursors_, [&](const Cursor& cursor) {
           return cursor.acknowledged == last_;
         });
}

Sequence PushTracker::Push(const PushTerms& terms) {
  ADAMANT_CHECK(CanPush(), "as many pushes are in flight as may be");
  terms_.push_back(terms);
  return ++last_;
}

std::optional<Sequence> PushTracker::SequenceOf(std::uint64_t request) const {
  const auto sent = unanswered_.find(request);
  return sent == unanswered_.end() ? std::nullopt : std::optional(sent->second.sequence);
}

void PushTracker::SetFetchedVersions(std::vector<std::uint64_t> versions) {
  ADAMANT_CHECK(versions.size() == fetched_version_.size(), "a version of every shard");
  fetched_version_ = std::move(versions);
}

void PushTracker::AskForFlush(bool wanted) {
  if (wanted && !flush_wanted_) {
    flush_at_ = {};
    flush_requests_ = 0;
  }
  flush_wanted_ = wanted;
}

std::vector<RetiredPush> PushTracker::TakeRetired() {
  Sequence acknowledged = last_;
  for (const Cursor& cursor : cursors_) {
    acknowledged = std::min(acknowledged, cursor.acknowledged);
  }
  std::vector<RetiredPush> retired;
  while (retired_ < acknowledged) {
    ++retired_;
    retired.push_back({.sequence = retired_, .refused = refused_.erase(retired_) > 0});
  }
  return retired;
}

Sequence PushTracker::Release() {
  Sequence released = retired_;
  for (const Cursor& cursor : cursors_) {
    if (options_.retain) {
      released = std::min({released, cursor.acknowledged, cursor.persisted});
    }
  }
  if (released > released_) {
    ADAMANT_FAILPOINT("push/release");
    const auto count = static_cast<std::ptrdiff_t>(released - released_);
    terms_.erase(terms_.begin(), terms_.begin() + count);
    released_ = released;
    flush_requests_ = 0;
  }
  return released_;
}

// --- What happens

void PushTracker::OnMap() {
  for (std::size_t position = 0; position < cursors_.size(); ++position) {
    const BucketRecord* const record = routes_.RecordOf(options_.pushed[position].shard);
    Cursor& cursor = cursors_[position];
    if (record == nullptr) {
      continue;
    }
    if (cursor.server != record->primary) {
      cursor.server = record->primary;
      Reset(cursor);
    }
    if (record->generation > cursor.generation) {
      cursor.generation = record->generation;
      OnRestored(cursor);
    }
  }
}

void PushTracker::OnDisconnected(ServerSlot server) {
  for (Cursor& cursor : cursors_) {
    if (cursor.server == server) {
      Reset(cursor);
    }
  }
  std::erase_if(unanswered_, [&](const auto& entry) { return entry.second.server == server; });
}

// What is in flight is to be sent anew; answers to it are void.
void PushTracker::Reset(Cursor& cursor) const {
  cursor.sent = cursor.acknowledged;
  cursor.since = routes_.last_request() + 1;
  cursor.skip = false;
}

// The server has all up to `sequence` that is not gone.
void PushTracker::Acknowledge(Cursor& cursor, Sequence sequence) {
  cursor.acknowledged = cursor.gone.FirstOutside(sequence + 1) - 1;
  cursor.sent = std::max(cursor.sent, cursor.acknowledged);
  cursor.most = std::max(cursor.most, cursor.acknowledged);
}

// The server wants `expected` next. Acknowledged updates behind it are sent again; those that are
// no longer held are lost.
void PushTracker::Rewind(Cursor& cursor, Sequence expected) {
  ADAMANT_FAILPOINT("push/rewind");
  if (expected < first_held()) {
    lost_updates_ += cursor.gone.Insert(expected, first_held());
  }
  Acknowledge(cursor, std::min(cursor.acknowledged, expected - 1));
  Reset(cursor);
}

// The bucket came back from a disk, perhaps an older one: the newest acknowledged update is sent
// once more, and the answer says whether the server has it.
void PushTracker::OnRestored(Cursor& cursor) const {
  ADAMANT_FAILPOINT("push/restored");
  cursor.persisted = 0;
  for (Sequence sequence = cursor.acknowledged; sequence >= first_held(); --sequence) {
    if (!cursor.gone.Contains(sequence)) {
      cursor.acknowledged = sequence - 1;
      break;
    }
  }
  Reset(cursor);
}

absl::Status PushTracker::OnReply(const PushReply& reply, Clock::TimePoint now) {
  const auto node = unanswered_.extract(reply.request);
  for (const ShardAck& ack : reply.acks) {
    if (ack.shard >= position_of_.size() || position_of_[ack.shard] < 0) {
      return Broken(ack.shard, "answers a push that never was");
    }
    const auto position = static_cast<std::size_t>(position_of_[ack.shard]);
    if (!node.empty() && reply.request >= cursors_[position].since) {
      ADAMANT_RETURN_IF_ERROR(OnAck(position, node.mapped(), ack, now));
    }
  }
  return absl::OkStatus();
}

absl::Status PushTracker::OnAck(std::size_t position,
                                const Sent& sent,
                                const ShardAck& ack,
                                Clock::TimePoint now) {
  Cursor& cursor = cursors_[position];
  if (sent.sequence <= cursor.acknowledged) {
    return absl::OkStatus();  // a later one has been acknowledged since, and with it this one
  }
  switch (ack.outcome) {
    case UpdateOutcome::kApplied:
    case UpdateOutcome::kDuplicate:
      ADAMANT_FAILPOINT("push/acknowledged");
      routes_.OnServed(ack.shard, ack.epoch);
      if (ack.outcome == UpdateOutcome::kApplied && sent.sequence <= cursor.most) {
        ++resent_updates_;
      }
      cursor.persisted = std::max(cursor.persisted, ack.persisted);
      cursor.epoch = std::max(cursor.epoch, ack.epoch);
      Acknowledge(cursor, sent.sequence);
      return absl::OkStatus();
    case UpdateOutcome::kNotFinite:
      if (sent.sequence > retired_) {
        refused_.insert(sent.sequence);
      }
      cursor.gone.Insert(sent.sequence, sent.sequence + 1);
      Acknowledge(cursor, cursor.acknowledged);
      return absl::OkStatus();
    case UpdateOutcome::kUnexpectedSequence:
      if (!routes_.Outdated(ack.shard, ack.epoch)) {
        return OnUnexpected(cursor, sent.sequence, ack);
      }
      routes_.OnNotReady(ack.shard, now);  // it has been replaced, or will soon know better
      Reset(cursor);
      return absl::OkStatus();
    case UpdateOutcome::kNotPrimary:
      routes_.OnNotPrimary(ack.shard, ack.epoch, now);
      Reset(cursor);
      return absl::OkStatus();
    case UpdateOutcome::kNotReady:
      routes_.OnNotReady(ack.shard, now);
      Reset(cursor);
      return absl::OkStatus();
    case UpdateOutcome::kStaleIncarnation:
      return absl::AbortedError("another process has taken this worker's slot");
    case UpdateOutcome::kMalformed:
      break;
  }
  return Broken(ack.shard, "says that the update is malformed");
}

absl::Status PushTracker::OnUnexpected(Cursor& cursor, Sequence sequence, const ShardAck& ack) {
  if (ack.expected == 0 || ack.expected >= sequence) {
    return Broken(ack.shard,
                  "expects sequence " + std::to_string(ack.expected) + " in place of " +
                      std::to_string(sequence));
  }
  routes_.OnServed(ack.shard, ack.epoch);
  Rewind(cursor, ack.expected);
  // Only now is it certain that skipping what is gone skips nothing else.
  cursor.skip = cursor.acknowledged >= ack.expected;
  return absl::OkStatus();
}

void PushTracker::OnValue(std::uint64_t request, const FetchedShard& fetched) {
  const std::int64_t position = position_of_[fetched.shard];
  if (position < 0) {
    return;
  }
  Cursor& cursor = cursors_[static_cast<std::size_t>(position)];
  if (request < cursor.since) {
    return;
  }
  // Under the epoch of the acknowledgement the value may be the older of the two.
  if (fetched.included_sequence < cursor.acknowledged && fetched.epoch > cursor.epoch) {
    Rewind(cursor, fetched.included_sequence + 1);
  }
  cursor.persisted = std::max(cursor.persisted, fetched.persisted);
}

absl::Status PushTracker::OnReply(const FlushReply& reply) {
  for (const FlushReply::Persisted& persisted : reply.persisted) {
    if (persisted.shard >= position_of_.size() || position_of_[persisted.shard] < 0) {
      return Broken(persisted.shard, "answers a flush that never was");
    }
    Cursor& cursor = cursors_[static_cast<std::size_t>(position_of_[persisted.shard])];
    if (reply.request >= cursor.since) {
      cursor.persisted = std::max(cursor.persisted, persisted.sequence);
    }
  }
  return absl::OkStatus();
}

}  // namespace adamant::worker
