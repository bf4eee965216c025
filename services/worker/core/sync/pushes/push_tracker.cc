#include "services/worker/core/sync/pushes/push_tracker.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/worker/core/sync/routing/message_packer.h"

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
  return retired_ == last_ && std::ranges::all_of(cursors_, [&](const PushCursor& cursor) {
           return cursor.acknowledged() == last_;
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

std::vector<RetiredPush> PushTracker::TakeRetired() {
  Sequence acknowledged = last_;
  for (const PushCursor& cursor : cursors_) {
    acknowledged = std::min(acknowledged, cursor.acknowledged());
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
  for (const PushCursor& cursor : cursors_) {
    if (options_.retain) {
      released = std::min({released, cursor.acknowledged(), cursor.persisted()});
    }
  }
  if (released > released_) {
    ADAMANT_FAILPOINT("push/release");
    const auto count = static_cast<std::ptrdiff_t>(released - released_);
    terms_.erase(terms_.begin(), terms_.begin() + count);
    released_ = released;
    flush_.OnReleased();
  }
  return released_;
}

// --- What happens

void PushTracker::OnPlacement() {
  for (std::size_t position = 0; position < cursors_.size(); ++position) {
    const BucketPlacement* const placement = routes_.PlacementOf(options_.pushed[position].shard);
    if (placement != nullptr) {
      cursors_[position].OnPlacement(*placement, first_held(), next_request());
    }
  }
}

void PushTracker::OnDisconnected(ServerSlot server) {
  for (PushCursor& cursor : cursors_) {
    cursor.OnDisconnected(server, next_request());
  }
  std::erase_if(unanswered_, [&](const auto& entry) { return entry.second.server == server; });
}

// Null for a shard that is not pushed.
PushCursor* PushTracker::Find(ShardId shard) {
  const std::int64_t position = shard < position_of_.size() ? position_of_[shard] : -1;
  return position < 0 ? nullptr : &cursors_[static_cast<std::size_t>(position)];
}

// The server wants `expected` next. Acknowledged updates behind it are sent again; those that are
// no longer held are lost.
void PushTracker::Rewind(PushCursor& cursor, Sequence expected) {
  lost_updates_ += cursor.Rewind(expected, first_held());
  cursor.Reset(next_request());
}

absl::Status PushTracker::OnReply(const PushReply& reply, Clock::TimePoint now) {
  const auto node = unanswered_.extract(reply.request);
  for (const ShardAck& ack : reply.acks) {
    PushCursor* const cursor = Find(ack.shard);
    if (cursor == nullptr) {
      return Broken(ack.shard, "answers a push that never was");
    }
    if (!node.empty() && cursor->Heeds(reply.request)) {
      ADAMANT_RETURN_IF_ERROR(OnAck(*cursor, node.mapped().sequence, ack, now));
    }
  }
  return absl::OkStatus();
}

absl::Status PushTracker::OnAck(PushCursor& cursor,
                                Sequence sequence,
                                const ShardAck& ack,
                                Clock::TimePoint now) {
  if (sequence <= cursor.acknowledged()) {
    return absl::OkStatus();  // a later one has been acknowledged since, and with it this one
  }
  switch (ack.outcome) {
    case PushOutcome::kApplied:
    case PushOutcome::kDuplicate:
      ADAMANT_FAILPOINT("push/acknowledged");
      routes_.OnServed(ack.shard, ack.configuration_version);
      if (ack.outcome == PushOutcome::kApplied && cursor.WasAcknowledged(sequence)) {
        ++resent_updates_;
      }
      cursor.OnServed(sequence, ack);
      return absl::OkStatus();
    case PushOutcome::kNotFinite:
      if (sequence > retired_) {
        refused_.insert(sequence);
      }
      cursor.OnRefused(sequence);
      return absl::OkStatus();
    case PushOutcome::kUnexpectedSequence:
      if (!routes_.Outdated(ack.shard, ack.configuration_version)) {
        return OnUnexpected(cursor, sequence, ack);
      }
      routes_.OnNotReady(ack.shard, now);  // it has been replaced, or will soon know better
      cursor.Reset(next_request());
      return absl::OkStatus();
    case PushOutcome::kNotPrimary:
      routes_.OnNotPrimary(ack.shard, ack.configuration_version, now);
      cursor.Reset(next_request());
      return absl::OkStatus();
    case PushOutcome::kNotReady:
      routes_.OnNotReady(ack.shard, now);
      cursor.Reset(next_request());
      return absl::OkStatus();
    case PushOutcome::kStaleIncarnation:
      return absl::AbortedError("another process has taken this worker's slot");
    case PushOutcome::kMalformed:
      break;
  }
  return Broken(ack.shard, "says that the update is malformed");
}

absl::Status PushTracker::OnUnexpected(PushCursor& cursor, Sequence sequence, const ShardAck& ack) {
  if (ack.expected == 0 || ack.expected >= sequence) {
    return Broken(ack.shard,
                  "expects sequence " + std::to_string(ack.expected) + " in place of " +
                      std::to_string(sequence));
  }
  routes_.OnServed(ack.shard, ack.configuration_version);
  Rewind(cursor, ack.expected);
  cursor.SkipGone(ack.expected);
  return absl::OkStatus();
}

void PushTracker::OnValue(std::uint64_t request, const FetchedShard& fetched) {
  PushCursor* const cursor = Find(fetched.shard);
  if (cursor == nullptr || !cursor->Heeds(request)) {
    return;
  }
  if (cursor->IsRolledBack(fetched.included_sequence, fetched.configuration_version)) {
    Rewind(*cursor, fetched.included_sequence + 1);
  }
  cursor->OnPersisted(fetched.persisted);
}

absl::Status PushTracker::OnReply(const FlushReply& reply) {
  for (const PersistedShard& persisted : reply.persisted) {
    PushCursor* const cursor = Find(persisted.shard);
    if (cursor == nullptr) {
      return Broken(persisted.shard, "answers a flush that never was");
    }
    if (cursor->Heeds(reply.request)) {
      cursor->OnPersisted(persisted.sequence);
    }
  }
  return absl::OkStatus();
}

// --- What is sent

std::vector<PushTracker::Message> PushTracker::Poll(Clock::TimePoint now) {
  std::vector<Message> messages;
  next_poll_.reset();
  PollPushes(now, messages);
  if (flush_.wanted()) {
    PollFlush(now, messages);
  }
  return messages;
}

void PushTracker::PollPushes(Clock::TimePoint now, std::vector<Message>& messages) {
  const std::vector<Ready> ready = TakeReady(now);
  MessagePacker<PushMessage> packer(options_.max_message_bytes, routes_);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const auto& [sequence, position, after_loss] = ready[i];
    if (i > 0 && sequence != ready[i - 1].sequence) {
      packer.Finish(messages);
    }
    ADAMANT_FAILPOINT("push/send");
    const PushedShard& pushed = options_.pushed[position];
    const ServerSlot server = cursors_[position].server();
    PushMessage& message =
        packer.Reserve(server,
                       {pushed.bytes, pushed.operand_bytes, layout_.shards()[pushed.shard].tensor},
                       messages);
    message.terms = terms_[sequence - first_held()];
    message.updates.push_back({.shard = pushed.shard,
                               .configuration_version = routes_.PlacementOf(pushed.shard)->version,
                               .sequence = sequence,
                               .fetched_version = fetched_version_[pushed.shard],
                               .after_loss = after_loss});
    unanswered_[message.request] = {.server = server, .sequence = sequence};
  }
  packer.Finish(messages);
}

// In the order in which they are sent.
std::vector<PushTracker::Ready> PushTracker::TakeReady(Clock::TimePoint now) {
  std::vector<Ready> ready;
  for (std::size_t position = 0; position < cursors_.size(); ++position) {
    if (cursors_[position].sent() >= last_) {
      continue;
    }
    const auto server = routes_.Find(options_.pushed[position].shard, now, next_poll_);
    if (!server.has_value()) {
      continue;
    }
    while (const auto update = cursors_[position].Send(*server, last_)) {
      ready.push_back(
          {.sequence = update->sequence, .position = position, .after_loss = update->after_loss});
    }
  }
  std::ranges::sort(ready, [](const Ready& a, const Ready& b) {
    return std::tie(a.sequence, a.position) < std::tie(b.sequence, b.position);
  });
  return ready;
}

void PushTracker::PollFlush(Clock::TimePoint now, std::vector<Message>& messages) {
  if (flush_.Due(now)) {
    std::map<ServerSlot, FlushMessage> by_server;
    for (std::size_t position = 0; position < cursors_.size(); ++position) {
      const ShardId shard = options_.pushed[position].shard;
      const auto server = routes_.Find(shard, now, next_poll_);
      if (server.has_value() && cursors_[position].persisted() < retired_) {
        by_server[*server].shards.push_back(shard);
      }
    }
    for (auto& [server, message] : by_server) {
      ADAMANT_FAILPOINT("push/ask_for_flush");
      message.request = routes_.NextRequest();
      message.server = server;
      messages.emplace_back(std::move(message));
    }
    flush_.OnAsked(now);
  }
  next_poll_ = next_poll_.has_value() ? std::min(*next_poll_, flush_.at()) : flush_.at();
}

}  // namespace adamant::worker
