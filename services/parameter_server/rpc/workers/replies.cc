#include "services/parameter_server/rpc/workers/replies.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "services/parameter_server/rpc/workers/exchange.h"

namespace adamant::parameter_server {
namespace {

// A synchronous call of gRPC cannot be told that its client is gone: it has to ask.
constexpr std::chrono::milliseconds kAskInterval{100};

// Far longer than a push takes while all copies are there, much shorter than until one is dropped.
constexpr std::chrono::milliseconds kFetchTimeout{500};

}  // namespace

Replies::Replies(rpc::FrameStream& stream) : stream_(stream), writer_([this] { KeepWriting(); }) {}

Replies::~Replies() { Close(); }

void Replies::Send(rpc::OutgoingFrame reply) {
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(reply));
  WriteQueued();
}

Replies::PushId Replies::Begin(std::uint64_t bytes, std::vector<ShardId> shards) {
  const MutexLock lock(mutex_);
  submitting_ = true;
  unanswered_bytes_ += bytes;
  unanswered_[++last_push_] = {.bytes = bytes, .shards = std::move(shards)};
  return last_push_;
}

void Replies::Answer(PushId push, rpc::OutgoingFrame reply) {
  const MutexLock lock(mutex_);
  const auto node = unanswered_.extract(push);
  if (closed_ || node.empty()) {
    return;
  }
  unanswered_bytes_ -= node.mapped().bytes;
  queue_.push_back(std::move(reply));
  answered_.NotifyAll();
  if (!submitting_ || push != last_push_) {
    queued_.NotifyAll();
  }
}

void Replies::Submitted() {
  const MutexLock lock(mutex_);
  submitting_ = false;
  WriteQueued();
}

bool Replies::AwaitRoom(std::uint64_t bytes, const GiveUp& give_up) {
  const MutexLock lock(mutex_);
  while (!unanswered_.empty() && unanswered_bytes_ + bytes > kMaxExchangeBytes) {
    if (give_up()) {
      return false;
    }
    answered_.WaitFor(mutex_, kAskInterval);
  }
  return true;
}

bool Replies::AwaitAll(const GiveUp& give_up) {
  const MutexLock lock(mutex_);
  while (!unanswered_.empty()) {
    if (give_up()) {
      return false;
    }
    answered_.WaitFor(mutex_, kAskInterval);
  }
  return true;
}

std::vector<ShardId> Replies::AwaitPushesTo(std::span<const ShardId> shards) {
  std::vector<ShardId> among(shards.begin(), shards.end());
  std::ranges::sort(among);
  const auto deadline = std::chrono::steady_clock::now() + kFetchTimeout;
  const MutexLock lock(mutex_);
  std::vector<ShardId> unanswered = Unanswered(among);
  for (auto now = std::chrono::steady_clock::now(); !unanswered.empty() && now < deadline;
       now = std::chrono::steady_clock::now()) {
    answered_.WaitFor(mutex_, deadline - now);
    unanswered = Unanswered(among);
  }
  return unanswered;
}

std::vector<ShardId> Replies::Unanswered(const std::vector<ShardId>& among) const {
  std::vector<ShardId> unanswered;
  for (const auto& [id, push] : unanswered_) {
    std::ranges::copy_if(push.shards, std::back_inserter(unanswered), [&](ShardId shard) {
      return std::ranges::binary_search(among, shard);
    });
  }
  std::ranges::sort(unanswered);
  return unanswered;
}

void Replies::Close() {
  {
    const MutexLock lock(mutex_);
    WriteQueued();
    closed_ = true;
    queued_.NotifyAll();
  }
  if (writer_.joinable()) {
    writer_.join();
  }
}

void Replies::KeepWriting() {
  const MutexLock lock(mutex_);
  while (!closed_ || !queue_.empty()) {
    if (queue_.empty() || writing_) {
      queued_.Wait(mutex_);
    } else {
      WriteQueued();
    }
  }
}

// Unless another thread is at it, which then does this too. The lock is not held while it writes.
void Replies::WriteQueued() {
  while (!writing_ && !queue_.empty()) {
    rpc::OutgoingFrame reply = std::move(queue_.front());
    queue_.pop_front();
    if (broken_) {
      continue;
    }
    writing_ = true;
    mutex_.Unlock();
    const bool written = stream_.Write(std::move(reply)).ok();
    mutex_.Lock();
    writing_ = false;
    broken_ = !written;
  }
}

}  // namespace adamant::parameter_server
