#include "services/worker/core/push_tracker.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNotPrimaryWait{500};
constexpr milliseconds kNotReadyFirstWait{50};
constexpr milliseconds kNotReadyLongestWait{1000};
constexpr std::uint64_t kAnyMap = std::numeric_limits<std::uint64_t>::max();

absl::Status Broken(ShardId shard, const std::string& what) {
  return absl::InternalError("the parameter server's reply for shard " + std::to_string(shard) +
                             " " + what);
}

}  // namespace

PushTracker::PushTracker(PushTrackerOptions options, const ShardLayout& layout)
    : options_(std::move(options)),
      layout_(layout),
      position_of_(layout.shards().size(), -1),
      lost_before_(options_.pushed.size(), 0),
      fetched_version_(layout.shards().size(), 0),
      gates_(layout.shards().size()) {
  ADAMANT_CHECK(options_.max_pushes >= 1, "a push must be able to start");
  for (std::size_t position = 0; position < options_.pushed.size(); ++position) {
    position_of_[options_.pushed[position].shard] = static_cast<std::int64_t>(position);
  }
}

PushTracker::Transfer PushTracker::MakeTransfer(std::uint64_t id, std::size_t parts) {
  Transfer transfer;
  transfer.id = id;
  transfer.left = parts;
  transfer.unsent = parts;
  transfer.parts.resize(parts);
  return transfer;
}

Sequence PushTracker::Push(std::uint64_t job_examples) {
  ADAMANT_CHECK(CanPush(), "as many pushes are in flight as may be");
  pushes_.push_back(MakeTransfer(++last_sequence_, options_.pushed.size()));
  pushes_.back().job_examples = job_examples;
  return last_sequence_;
}

FetchId PushTracker::Fetch(std::uint64_t snapshot) {
  fetches_.push_back(MakeTransfer(++last_fetch_, layout_.shards().size()));
  fetches_.back().snapshot = snapshot;
  return last_fetch_;
}

void PushTracker::Applied(FetchId fetch) {
  const Transfer* const transfer = FindFetch(fetch);
  ADAMANT_CHECK(transfer != nullptr && transfer->left == 0, "only complete fetches are applied");
  for (std::size_t shard = 0; shard < transfer->parts.size(); ++shard) {
    fetched_version_[shard] = transfer->parts[shard].version;
  }
  Drop(fetch);
}

void PushTracker::Drop(FetchId fetch) {
  std::erase_if(fetches_, [&](const Transfer& transfer) { return transfer.id == fetch; });
}

const PushTracker::Transfer* PushTracker::FindFetch(FetchId fetch) const {
  const auto found = std::find_if(fetches_.begin(), fetches_.end(), [&](const Transfer& transfer) {
    return transfer.id == fetch;
  });
  return found == fetches_.end() ? nullptr : &*found;
}

bool PushTracker::Received(FetchId fetch, ShardId shard) const {
  const Transfer* const transfer = FindFetch(fetch);
  return transfer != nullptr && transfer->parts[shard].done;
}

bool PushTracker::Includes(FetchId fetch, ShardId shard, Sequence sequence) const {
  const Transfer* const transfer = FindFetch(fetch);
  return transfer != nullptr && transfer->parts[shard].done &&
         transfer->parts[shard].included >= sequence;
}

std::vector<RetiredPush> PushTracker::TakeRetired() {
  while (!pushes_.empty() && pushes_.front().left == 0) {
    const Transfer& push = pushes_.front();
    const bool refused = std::any_of(
        push.parts.begin(), push.parts.end(), [](const Part& part) { return part.refused; });
    retired_.push_back({.sequence = push.id, .refused = refused});
    pushes_.pop_front();
  }
  return std::exchange(retired_, {});
}

void PushTracker::OnMap(const ClusterMap& map) {
  if (map.version >= map_.version) {
    map_ = map;
  }
}

void PushTracker::OnConnected(ServerSlot server) {
  if (server >= connected_.size()) {
    connected_.resize(server + 1, false);
  }
  connected_[server] = true;
}

void PushTracker::OnDisconnected(ServerSlot server) {
  if (server >= connected_.size() || !connected_[server]) {
    return;
  }
  connected_[server] = false;
  for (auto* transfers : {&pushes_, &fetches_}) {
    for (Transfer& transfer : *transfers) {
      for (Part& part : transfer.parts) {
        if (part.server == server && !part.done) {
          MarkUnsent(transfer, part);
        }
      }
    }
  }
}

void PushTracker::MarkUnsent(Transfer& transfer, Part& part) {
  if (part.done) {
    part.done = false;
    ++transfer.left;
  }
  if (part.request != 0) {
    part.request = 0;
    ++transfer.unsent;
  }
}

void PushTracker::MarkDone(Transfer& transfer, Part& part) {
  part.done = true;
  --transfer.left;
}

absl::Status PushTracker::OnPushReply(const PushReply& reply, Clock::TimePoint now) {
  for (const ShardAck& ack : reply.acks) {
    if (ack.shard >= position_of_.size() || position_of_[ack.shard] < 0) {
      return Broken(ack.shard, "answers a push that never was");
    }
    ADAMANT_RETURN_IF_ERROR(OnAck(reply.request, ack, now));
  }
  return absl::OkStatus();
}

absl::Status PushTracker::OnAck(std::uint64_t request, const ShardAck& ack, Clock::TimePoint now) {
  const auto position = static_cast<std::size_t>(position_of_[ack.shard]);
  const auto found = std::find_if(pushes_.begin(), pushes_.end(), [&](const Transfer& push) {
    return push.parts[position].request == request && !push.parts[position].done;
  });
  if (found == pushes_.end()) {
    return absl::OkStatus();  // sent again since, or retired
  }
  Part& part = found->parts[position];
  switch (ack.outcome) {
    case UpdateOutcome::kApplied:
    case UpdateOutcome::kDuplicate:
      gates_[ack.shard] = {};
      MarkDone(*found, part);
      return absl::OkStatus();
    case UpdateOutcome::kNotFinite:
      part.refused = true;
      MarkDone(*found, part);
      return absl::OkStatus();
    case UpdateOutcome::kUnexpectedSequence:
      return Rewind(static_cast<std::size_t>(found - pushes_.begin()), position, ack.expected);
    case UpdateOutcome::kNotPrimary:
    case UpdateOutcome::kNotReady:
      CloseGate(ack.shard, ack.outcome == UpdateOutcome::kNotPrimary, part, now);
      MarkUnsent(*found, part);
      return absl::OkStatus();
    case UpdateOutcome::kStaleIncarnation:
      return absl::AbortedError("another process has taken this worker's slot");
    case UpdateOutcome::kMalformed:
      break;
  }
  return Broken(ack.shard, "says that the update is malformed");
}

// The server wants `expected` next. What is still held from there on is sent again. If it wants
// something older, it may have lost what it had acknowledged; or this answer is older than an
// acknowledgement that came from another server, if the shard has moved. So it is asked once more.
absl::Status PushTracker::Rewind(std::size_t push, std::size_t position, Sequence expected) {
  if (expected == 0 || expected >= pushes_[push].id) {
    return Broken(options_.pushed[position].shard,
                  "expects sequence " + std::to_string(expected) + " in place of " +
                      std::to_string(pushes_[push].id));
  }
  std::size_t first = 0;
  while (first < push && (pushes_[first].id < expected || pushes_[first].parts[position].refused)) {
    ++first;
  }
  for (std::size_t i = first; i <= push; ++i) {
    Part& part = pushes_[i].parts[position];
    if (i == push || part.done) {
      MarkUnsent(pushes_[i], part);
    }
  }
  Part& oldest = pushes_[first].parts[position];
  if (pushes_[first].id > expected && oldest.request == 0) {
    if (oldest.doubted && !oldest.after_loss) {
      oldest.after_loss = true;
      const Sequence from = std::max(expected, lost_before_[position]);
      lost_before_[position] = std::max(lost_before_[position], pushes_[first].id);
      lost_updates_ += lost_before_[position] - from;
    }
    oldest.doubted = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<FetchProgress> PushTracker::OnFetchReply(const FetchReply& reply,
                                                        Clock::TimePoint now) {
  FetchProgress progress;
  for (std::size_t i = 0; i < reply.shards.size(); ++i) {
    const FetchedShard& fetched = reply.shards[i];
    if (fetched.shard >= gates_.size()) {
      return Broken(fetched.shard, "names a shard that the model does not have");
    }
    const auto found = std::find_if(fetches_.begin(), fetches_.end(), [&](const Transfer& fetch) {
      const Part& part = fetch.parts[fetched.shard];
      return part.request == reply.request && !part.done;
    });
    if (found == fetches_.end()) {
      continue;
    }
    Part& part = found->parts[fetched.shard];
    progress.fetch = found->id;
    if (fetched.outcome == FetchOutcome::kFound) {
      gates_[fetched.shard] = {};
      part.version = fetched.version;
      part.included = fetched.included_sequence;
      MarkDone(*found, part);
      progress.fresh.push_back(i);
      progress.complete = found->left == 0;
    } else if (fetched.outcome == FetchOutcome::kNoSuchSnapshot) {
      progress.missing = true;
    } else {
      CloseGate(fetched.shard, fetched.outcome == FetchOutcome::kNotPrimary, part, now);
      MarkUnsent(*found, part);
    }
  }
  if (progress.missing) {
    progress.fresh.clear();
    Drop(progress.fetch);
  }
  return progress;
}

void PushTracker::CloseGate(ShardId shard,
                            bool not_primary,
                            const Part& part,
                            Clock::TimePoint now) {
  Gate& gate = gates_[shard];
  if (not_primary) {
    gate.after_map = part.map_version;
    gate.at = now + kNotPrimaryWait;
    return;
  }
  const std::uint32_t doublings = std::min(gate.refusals++, 5u);
  gate.after_map = kAnyMap;
  gate.at = now + std::min(kNotReadyFirstWait * (1 << doublings), kNotReadyLongestWait);
}

}  // namespace adamant::worker
