// What PushTracker sends: the updates that may go now, grouped into messages.

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

#include "services/common/base/failpoint.h"
#include "services/worker/core/message_packer.h"
#include "services/worker/core/push_tracker.h"

namespace adamant::worker {
namespace {

/// Updates of one shard in flight while it catches up.
constexpr Sequence kWindow = 8;

constexpr std::chrono::milliseconds kFirstFlushWait{25};
constexpr std::chrono::milliseconds kLongestFlushWait{400};
constexpr std::uint32_t kMostDoublings = 4;

}  // namespace

std::vector<PushTracker::Message> PushTracker::Poll(Clock::TimePoint now) {
  std::vector<Message> messages;
  next_poll_.reset();
  PollPushes(now, messages);
  if (flush_wanted_) {
    PollFlush(now, messages);
  }
  return messages;
}

void PushTracker::PollPushes(Clock::TimePoint now, std::vector<Message>& messages) {
  std::vector<Ready> ready;
  for (std::size_t position = 0; position < cursors_.size(); ++position) {
    if (cursors_[position].sent < last_) {
      FindReady(position, now, ready);
    }
  }
  std::ranges::sort(ready, [](const Ready& a, const Ready& b) {
    return std::tie(a.sequence, a.position) < std::tie(b.sequence, b.position);
  });
  MessagePacker<PushMessage> packer(options_.max_message_bytes, routes_);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const auto& [sequence, position, after_loss] = ready[i];
    if (i > 0 && sequence != ready[i - 1].sequence) {
      packer.Finish(messages);
    }
    ADAMANT_FAILPOINT("push/send");
    const PushedShard& pushed = options_.pushed[position];
    const ServerSlot server = cursors_[position].server;
    PushMessage& message =
        packer.Reserve(server,
                       {pushed.bytes, pushed.operand_bytes, layout_.shards()[pushed.shard].tensor},
                       messages);
    message.sequence = sequence;
    const PushTerms& terms = terms_[sequence - first_held()];
    message.progress = terms.progress;
    message.examples = terms.examples;
    message.correction = terms.correction;
    message.updates.push_back({.shard = pushed.shard,
                               .bucket_epoch = routes_.RecordOf(pushed.shard)->epoch,
                               .fetched_version = fetched_version_[pushed.shard],
                               .after_loss = after_loss});
    unanswered_[message.request] = {.server = server, .sequence = sequence};
  }
  packer.Finish(messages);
}

void PushTracker::FindReady(std::size_t position, Clock::TimePoint now, std::vector<Ready>& ready) {
  Cursor& cursor = cursors_[position];
  const auto server = routes_.Find(options_.pushed[position].shard, now, next_poll_);
  if (!server.has_value()) {
    return;
  }
  while (cursor.sent - cursor.acknowledged < kWindow) {
    const Sequence next = cursor.gone.FirstOutside(cursor.sent + 1);
    if (next > last_) {
      return;
    }
    ready.push_back({.sequence = next, .position = position, .after_loss = cursor.skip});
    cursor.sent = next;
    cursor.server = *server;
    cursor.skip = false;
  }
}

void PushTracker::PollFlush(Clock::TimePoint now, std::vector<Message>& messages) {
  if (now >= flush_at_) {
    std::map<ServerSlot, FlushMessage> by_server;
    for (std::size_t position = 0; position < cursors_.size(); ++position) {
      const ShardId shard = options_.pushed[position].shard;
      const auto server = routes_.Find(shard, now, next_poll_);
      if (server.has_value() && cursors_[position].persisted < retired_) {
        by_server[*server].shards.push_back(shard);
      }
    }
    for (auto& [server, message] : by_server) {
      ADAMANT_FAILPOINT("push/ask_for_flush");
      message.request = routes_.NextRequest();
      message.server = server;
      messages.emplace_back(std::move(message));
    }
    flush_at_ = now + std::min(kFirstFlushWait * (1 << std::min(flush_requests_++, kMostDoublings)),
                               kLongestFlushWait);
  }
  next_poll_ = next_poll_.has_value() ? std::min(*next_poll_, flush_at_) : flush_at_;
}

}  // namespace adamant::worker
