#include "services/worker/core/sync/fetches/fetch_tracker.h"

#include <algorithm>
#include <string>

#include "services/worker/core/sync/routing/message_packer.h"

namespace adamant::worker {

FetchTracker::FetchTracker(std::uint64_t max_message_bytes,
                           const ShardLayout& layout,
                           Routes& routes)
    : max_message_bytes_(max_message_bytes), layout_(layout), routes_(routes) {}

FetchId FetchTracker::Fetch(std::uint64_t snapshot) {
  Transfer& fetch = fetches_.emplace_back();
  fetch.id = ++last_fetch_;
  fetch.snapshot = snapshot;
  fetch.parts.resize(layout_.shards().size());
  fetch.left = fetch.parts.size();
  fetch.unsent = fetch.parts.size();
  return fetch.id;
}

void FetchTracker::Drop(FetchId fetch) {
  std::erase_if(fetches_, [&](const Transfer& each) { return each.id == fetch; });
}

const FetchTracker::Transfer* FetchTracker::Find(FetchId fetch) const {
  const auto found = std::find_if(
      fetches_.begin(), fetches_.end(), [&](const Transfer& each) { return each.id == fetch; });
  return found == fetches_.end() ? nullptr : &*found;
}

bool FetchTracker::Received(FetchId fetch, ShardId shard) const {
  const Transfer* const found = Find(fetch);
  return found != nullptr && found->parts[shard].done;
}

bool FetchTracker::Includes(FetchId fetch, ShardId shard, Sequence sequence) const {
  return Received(fetch, shard) && Find(fetch)->parts[shard].included >= sequence;
}

std::vector<std::uint64_t> FetchTracker::Versions(FetchId fetch) const {
  std::vector<std::uint64_t> versions;
  if (const Transfer* const found = Find(fetch)) {
    for (const Part& part : found->parts) {
      versions.push_back(part.version);
    }
  }
  return versions;
}

void FetchTracker::OnPlacement() {
  for (Transfer& fetch : fetches_) {
    for (ShardId shard = 0; shard < fetch.parts.size(); ++shard) {
      const BucketPlacement* const placement = routes_.PlacementOf(shard);
      Part& part = fetch.parts[shard];
      if (placement != nullptr && part.server != placement->primary) {
        MarkUnsent(fetch, part);
      }
    }
  }
}

void FetchTracker::OnDisconnected(ServerSlot server) {
  for (Transfer& fetch : fetches_) {
    for (Part& part : fetch.parts) {
      if (part.server == server) {
        MarkUnsent(fetch, part);
      }
    }
  }
}

void FetchTracker::MarkUnsent(Transfer& fetch, Part& part) {
  if (!part.done && part.request != 0) {
    part.request = 0;
    ++fetch.unsent;
  }
}

absl::StatusOr<FetchProgress> FetchTracker::OnReply(const FetchReply& reply, Clock::TimePoint now) {
  FetchProgress progress;
  for (std::size_t i = 0; i < reply.shards.size(); ++i) {
    const FetchedShard& fetched = reply.shards[i];
    if (fetched.shard >= layout_.shards().size()) {
      return absl::InternalError("a parameter server sent a value of shard " +
                                 std::to_string(fetched.shard) + ", which the model does not have");
    }
    const auto fetch = std::find_if(fetches_.begin(), fetches_.end(), [&](const Transfer& each) {
      const Part& part = each.parts[fetched.shard];
      return part.request == reply.request && !part.done;
    });
    if (fetch == fetches_.end()) {
      continue;
    }
    Part& part = fetch->parts[fetched.shard];
    progress.fetch = fetch->id;
    if (fetched.outcome == FetchOutcome::kFound &&
        !routes_.Outdated(fetched.shard, fetched.configuration_version)) {
      OnFound(fetched, *fetch, part);
      progress.fresh.push_back(i);
      progress.complete = fetch->left == 0;
    } else {
      OnRefused(fetched, part, now);
      MarkUnsent(*fetch, part);
    }
  }
  return progress;
}

void FetchTracker::OnFound(const FetchedShard& fetched, Transfer& fetch, Part& part) {
  routes_.OnServed(fetched.shard, fetched.configuration_version);
  part.version = fetched.version;
  part.included = fetched.included_sequence;
  part.done = true;
  --fetch.left;
}

void FetchTracker::OnRefused(const FetchedShard& fetched, Part& part, Clock::TimePoint now) {
  switch (fetched.outcome) {
    case FetchOutcome::kNotPrimary:
      routes_.OnNotPrimary(fetched.shard, fetched.configuration_version, now);
      break;
    case FetchOutcome::kNoSuchSnapshot:
      // A new primary may be about to take it. Other traffic of the shard need not wait.
      part.retry_at = now + RetryWait(part.misses++);
      break;
    case FetchOutcome::kFound:  // of a lower configuration than it should be
    case FetchOutcome::kNotReady:
      routes_.OnNotReady(fetched.shard, now);
      break;
  }
}

std::vector<FetchMessage> FetchTracker::Poll(Clock::TimePoint now) {
  std::vector<FetchMessage> messages;
  next_poll_.reset();
  for (Transfer& fetch : fetches_) {
    if (fetch.unsent > 0) {
      PollFetch(fetch, now, messages);
    }
  }
  return messages;
}

void FetchTracker::PollFetch(Transfer& fetch,
                             Clock::TimePoint now,
                             std::vector<FetchMessage>& messages) {
  MessagePacker<FetchMessage> packer(max_message_bytes_, routes_);
  for (ShardId shard = 0; shard < fetch.parts.size(); ++shard) {
    Part& part = fetch.parts[shard];
    if (part.done || part.request != 0) {
      continue;
    }
    if (now < part.retry_at) {
      next_poll_ = next_poll_.has_value() ? std::min(*next_poll_, part.retry_at) : part.retry_at;
      continue;
    }
    const auto server = routes_.Find(shard, now, next_poll_);
    if (!server.has_value()) {
      continue;
    }
    const std::uint64_t bytes = layout_.shards()[shard].size() * sizeof(float);
    FetchMessage& message = packer.Reserve(*server, {.bytes = bytes}, messages);
    message.fetch = fetch.id;
    message.snapshot = fetch.snapshot;
    message.shards.push_back(shard);
    part.request = message.request;
    part.server = *server;
    --fetch.unsent;
  }
  packer.Finish(messages);
}

}  // namespace adamant::worker
