#include "services/parameter_server/core/replication/primary.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/seconds.h"

namespace adamant::parameter_server {

Primary::Primary(BucketId bucket,
                 const Options& options,
                 ReplicaHost& host,
                 const Configuration& configuration,
                 LocalCopy& local,
                 Proposer& proposals)
    : bucket_(bucket),
      options_(options),
      host_(host),
      configuration_(configuration),
      local_(local),
      proposals_(proposals),
      traffic_(bucket,
               {.times = options.times, .max_log_bytes = options.max_log_bytes},
               host,
               configuration,
               local.log()),
      reconfiguration_(configuration, local.log(), traffic_, proposals),
      hints_(options.self, configuration, traffic_.peers(), proposals),
      transfer_(bucket, host, configuration, local.log()) {}

// --- Configurations

void Primary::EndConfiguration() {
  transfer_.Clear();
  traffic_.Clear();
}

void Primary::BeginConfiguration(Clock::TimePoint now) {
  began_at_ = now;
  traffic_.BeginConfiguration(options_.self, now);
  if (!local_.has_content()) {
    role_ = Role::kLoading;
    host_.Load(bucket_, !configuration_.created);
    return;
  }
  if (!IsPrimary()) {
    ADAMANT_FAILPOINT("replica/reconcile");
    role_ = Role::kReconciling;
    promotion_ = local_.log().prepared();
  } else if (role_ == Role::kDraining) {
    role_ = Role::kServing;  // the successor is gone
  }
  traffic_.SendBeacons(now);
  TryCommit(now);
  FollowHint(now);
}

void Primary::OnLoaded(Clock::TimePoint now) {
  if (role_ != Role::kLoading) {
    return;
  }
  local_.SetHasContent();
  role_ = Role::kReconciling;
  promotion_ = 0;
  traffic_.SendBeacons(now);
  ServeIfReconciled(now);
  FollowHint(now);
}

// --- Hints

bool Primary::MayFollowHints() const {
  return (role_ == Role::kServing || role_ == Role::kReconciling) &&
         !proposals_.binding().has_value();
}

void Primary::FollowHint(Clock::TimePoint now) {
  if (const std::optional<ServerId> not_to_add = hints_.NotToAdd()) {
    return reconfiguration_.Drop(*not_to_add, now);  // the controller will not add it any more
  }
  if (!MayFollowHints()) {
    return;
  }
  if (const std::optional<ServerId> successor = hints_.Successor();
      successor && role_ == Role::kServing) {
    traffic_.GiveUpCopy();
    role_ = Role::kDraining;
    return transfer_.Begin(*successor, now);
  }
  if (const std::optional<ServerId> departing = hints_.Departing()) {
    return reconfiguration_.Drop(*departing, now);
  }
  if (hints_.GivesUpCopy()) {
    traffic_.GiveUpCopy();
  }
  if (const std::optional<ServerId> learner = hints_.Learner();
      learner && now >= traffic_.next_copy()) {
    traffic_.BeginCopy(*learner, now);
  }
}

// --- Deaths and time

void Primary::OnDead(const std::vector<ServerId>& dead, Clock::TimePoint now) {
  traffic_.peers().SetDead(dead);
  if (IsPrimary()) {
    CheckPeers(now);
  }
}

void Primary::CheckPeers(Clock::TimePoint now) {
  traffic_.SendAgain(now);
  traffic_.CheckCopy(now);
  reconfiguration_.DropLost(now);
}

void Primary::Tick(Clock::TimePoint now) {
  if (!IsPrimary()) {
    return;
  }
  if (now >= traffic_.next_beacon()) {
    role_ == Role::kLoading ? traffic_.PostponeBeacons(now) : traffic_.SendBeacons(now);
  }
  CheckPeers(now);
  traffic_.RaiseDurable();  // who held it may have gone
  transfer_.Release(now);
  FollowHint(now);
}

Clock::TimePoint Primary::NextTick() const {
  if (!IsPrimary()) {
    return Clock::TimePoint::max();
  }
  Clock::TimePoint next =
      std::min(traffic_.NextCheck(proposals_.drop().has_value()), transfer_.NextRelease());
  if (MayFollowHints() && hints_.Learner().has_value()) {
    next = std::min(next, traffic_.next_copy());
  }
  return next;
}

// --- Entries

// A bucket that is not known to have been created would be created anew if this server died.
bool Primary::CanAppend() const {
  return role_ == Role::kServing && configuration_.created &&
         configuration_.replicas.size() >= options_.min_in_sync &&
         local_.log().bytes() < options_.max_log_bytes && !traffic_.peers().AnyIsFull();
}

Lsn Primary::Append(Entry entry, Clock::TimePoint now) {
  ADAMANT_CHECK(CanAppend(), "the primary was asked whether it may append");
  entry.lsn = local_.log().prepared() + 1;
  entry.origin = configuration_.version;
  const Lsn lsn = entry.lsn;
  ADAMANT_FAILPOINT("replica/append");
  const EntryPtr kept = std::make_shared<const Entry>(std::move(entry));
  local_.Keep(kept);
  traffic_.OnAppended(*kept, now);
  TryCommit(now);
  return lsn;
}

// --- Commit

void Primary::TryCommit(Clock::TimePoint now) {
  if (!IsPrimary() || role_ == Role::kLoading) {
    return;
  }
  if (configuration_.replicas.size() >= options_.min_in_sync && traffic_.peers().LeaseHolds(now)) {
    local_.CommitUpTo(traffic_.peers().AckedByAll(local_.log().persisted()));
  }
  ServeIfReconciled(now);
  transfer_.Release(now);
  reconfiguration_.AddLearner(promotion_, now);
}

void Primary::ServeIfReconciled(Clock::TimePoint now) {
  if (role_ == Role::kReconciling && local_.log().committed() >= promotion_) {
    ADAMANT_FAILPOINT("replica/serve");
    role_ = Role::kServing;
    reconcile_seconds_ = Seconds(now - began_at_);
    host_.Serving(bucket_);
    FollowHint(now);
  }
}

bool Primary::CanRead(Clock::TimePoint now) const {
  return role_ == Role::kServing && traffic_.peers().LeaseHolds(now);
}

// --- Messages

void Primary::OnMessage(const ServerId& from, const PeerMessage& message, Clock::TimePoint now) {
  if (!IsPrimary()) {
    return;
  }
  if (const auto* ack = std::get_if<PrepareAck>(&message.kind)) {
    if (traffic_.OnAcknowledged(from, *ack, now)) {
      TryCommit(now);
    }
  } else if (const auto* answer = std::get_if<BeaconAnswer>(&message.kind)) {
    if (traffic_.OnAnswered(from, *answer, now)) {
      TryCommit(now);
    }
  } else if (const auto* copied = std::get_if<CopyAck>(&message.kind)) {
    traffic_.OnCopyAcknowledged(from, *copied, now);
  }
}

void Primary::OnConnected(const ServerId& server, Clock::TimePoint now) {
  if (IsPrimary() && role_ != Role::kLoading && traffic_.OnConnected(server, now)) {
    FollowHint(now);
  }
}

void Primary::OnCopied(std::uint64_t copy, Clock::TimePoint now) {
  if (traffic_.OnCopied(copy, now)) {
    reconfiguration_.AddLearner(promotion_, now);
  }
}

void Primary::RequestFlush(Clock::TimePoint now) {
  if (IsPrimary()) {
    traffic_.RequestFlush(now);
  }
}

}  // namespace adamant::parameter_server
