#include "services/worker/core/intake/work_tracker.h"

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::worker {
namespace {

constexpr std::size_t kMaxResultsPerMessage = 8192;

bool IsConnected(const std::vector<bool>& connected, ServerSlot server) {
  return server < connected.size() && connected[server];
}

}  // namespace

void WorkTracker::Trained(Sequence push, std::vector<LeaseResult> results) {
  in_push_[push] = std::move(results);
}

void WorkTracker::Retired(Sequence push, bool refused, Clock::TimePoint now) {
  auto node = in_push_.extract(push);
  if (node.empty()) {
    return;
  }
  std::erase_if(node.mapped(), [&](const LeaseResult& result) { return Void(result.lease); });
  if (!refused) {
    Finish(node.mapped(), now);
    return;
  }
  for (const LeaseResult& result : node.mapped()) {
    to_hand_back_.push_back(result.lease);
  }
}

void WorkTracker::Evaluated(const LeaseResult& result, Clock::TimePoint now) {
  Finish({result}, now);
}

void WorkTracker::HandBack(const std::vector<Lease>& leases) {
  to_hand_back_.insert(to_hand_back_.end(), leases.begin(), leases.end());
}

void WorkTracker::OnPlacement(const PlacementView& placement) {
  if (placement.version >= placement_.version) {
    placement_ = placement;
  }
}

void WorkTracker::OnConnected(ServerSlot server) {
  if (server >= connected_.size()) {
    connected_.resize(server + 1, false);
  }
  connected_[server] = true;
}

void WorkTracker::OnDisconnected(ServerSlot server) {
  if (!IsConnected(connected_, server)) {
    return;
  }
  connected_[server] = false;
  for (auto& [lease, sent] : unanswered_) {
    if (sent.server == server) {
      sent.server.reset();
    }
  }
}

void WorkTracker::OnAcknowledged(const std::vector<Lease>& leases) {
  for (const Lease& lease : leases) {
    unanswered_.erase(lease);
  }
}

void WorkTracker::OnEpochClosed(DataEpoch epoch) {
  closed_epoch_ = std::max(closed_epoch_, epoch);
  std::erase_if(unanswered_, [&](const auto& entry) { return Void(entry.first); });
  std::erase_if(to_hand_back_, [&](const Lease& lease) { return Void(lease); });
}

bool WorkTracker::Void(const Lease& lease) const {
  return lease.batch.kind == WorkKind::kTrain && lease.batch.epoch <= closed_epoch_;
}

std::optional<ServerSlot> WorkTracker::OwnerOf(const Lease& lease) const {
  // Validation batches are all dispatched by the owner of part 0.
  const std::uint32_t part = lease.batch.kind == WorkKind::kEvaluate ? 0 : lease.batch.part;
  if (part >= placement_.part_owners.size()) {
    return std::nullopt;
  }
  return placement_.part_owners[part];
}

// Messages are made here, push by push, so that what stands in one never depends on time. A part
// that has just changed hands may be dispatched by one that the view does not name yet. It keeps
// the lease until it hears of it, whatever another answers who counts for the part still.
void WorkTracker::Finish(const std::vector<LeaseResult>& results, Clock::TimePoint now) {
  std::map<ServerSlot, std::vector<LeaseResult>> by_server;
  for (const LeaseResult& result : results) {
    Sent& sent = unanswered_[result.lease];
    sent.result = result;
    const auto owner = OwnerOf(result.lease);
    if (owner.has_value() && IsConnected(connected_, *owner)) {
      sent.server = owner;
      sent.repeat_at = now + kRepeatAfter;
      by_server[*owner].push_back(result);
    }
    const ServerSlot grantor = protocol::GrantorOf(result.lease);
    if (owner != grantor && IsConnected(connected_, grantor)) {
      by_server[grantor].push_back(result);
    }
  }
  for (auto& [server, part] : by_server) {
    ADAMANT_FAILPOINT("work/acknowledge");
    outbox_.emplace_back(AcknowledgeMessage{.server = server, .results = std::move(part)});
  }
}

std::vector<WorkTracker::Message> WorkTracker::Poll(Clock::TimePoint now) {
  std::map<ServerSlot, AcknowledgeMessage> repeats;
  for (auto& [lease, sent] : unanswered_) {
    const auto owner = OwnerOf(lease);
    if (!owner.has_value() || !IsConnected(connected_, *owner) ||
        (sent.server == owner && now < sent.repeat_at)) {
      continue;
    }
    AcknowledgeMessage& message = repeats[*owner];
    if (message.results.size() < kMaxResultsPerMessage) {
      message.server = *owner;
      message.results.push_back(sent.result);
      sent.server = owner;
      sent.repeat_at = now + kRepeatAfter;
    }
  }
  for (auto& [server, message] : repeats) {
    ADAMANT_FAILPOINT("work/acknowledge_again");
    outbox_.emplace_back(std::move(message));
  }
  PollHandBacks();
  return std::exchange(outbox_, {});
}

// To all data servers: a part that has just changed hands may be dispatched by one that the view
// does not name yet, and what a server did not grant means nothing to it.
void WorkTracker::PollHandBacks() {
  std::vector<Lease> leases;
  std::erase_if(to_hand_back_, [&](const Lease& lease) {
    const auto owner = OwnerOf(lease);
    if (!owner.has_value() || !IsConnected(connected_, *owner)) {
      return false;
    }
    leases.push_back(lease);
    return true;
  });
  for (ServerSlot server = 0; !leases.empty() && server < connected_.size(); ++server) {
    if (connected_[server]) {
      ADAMANT_FAILPOINT("work/hand_back");
      outbox_.emplace_back(HandBackMessage{.server = server, .leases = leases});
    }
  }
}

std::optional<Clock::TimePoint> WorkTracker::NextPoll() const {
  std::optional<Clock::TimePoint> next;
  for (const auto& [lease, sent] : unanswered_) {
    if (sent.server.has_value() && (!next.has_value() || sent.repeat_at < *next)) {
      next = sent.repeat_at;
    }
  }
  return next;
}

bool WorkTracker::Counted() const {
  return in_push_.empty() && std::ranges::none_of(unanswered_, [](const auto& entry) {
           return entry.first.batch.kind == WorkKind::kTrain;
         });
}

bool WorkTracker::Idle() const {
  return in_push_.empty() && unanswered_.empty() && to_hand_back_.empty() && outbox_.empty();
}

}  // namespace adamant::worker
