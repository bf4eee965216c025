#include "services/parameter_server/core/replication/replica.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "services/common/base/failpoint.h"
#include "services/common/base/seconds.h"

namespace adamant::parameter_server {

Replica::Replica(BucketId bucket, const Options& options, ReplicaHost& host)
    : bucket_(bucket),
      options_(options),
      host_(host),
      local_(bucket, options.logging, host),
      proposals_(bucket, options.self, host, configuration_, local_.log()),
      primary_(bucket,
               {.self = options.self,
                .times = options.times,
                .min_in_sync = options.min_in_sync,
                .max_log_bytes = options.max_log_bytes},
               host,
               configuration_,
               local_,
               proposals_),
      following_(bucket,
                 {.self = options.self, .grace = options.times.grace},
                 host,
                 configuration_,
                 local_) {}

// --- Configurations

void Replica::OnConfiguration(const Configuration& configuration, Clock::TimePoint now) {
  if (configuration.version > configuration_.version) {
    Adopt(configuration, now);
  } else if (configuration.version == configuration_.version && configuration.version > 0) {
    configuration_ = configuration;  // the same, perhaps with other hints
    primary_.FollowHint(now);
  }
}

void Replica::Adopt(const Configuration& configuration, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/adopt");
  const bool was_primary = IsPrimary();
  const bool primary = configuration.primary == options_.self;
  if (proposals_.Binds(Proposal::Kind::kPromote) && primary) {
    replace_seconds_ = Seconds(now - proposals_.opened_at());
  }
  primary_.GiveUpCopy();
  if (configuration.generation != configuration_.generation) {
    Leave();  // all replicas were lost: what counts is on a disk
  }
  configuration_ = configuration;
  proposals_.Clear();
  following_.BeginConfiguration();
  primary_.EndConfiguration();
  if (was_primary && !primary) {
    host_.Demoted(bucket_);
  }
  if (primary) {
    following_.Stop();
    primary_.BeginConfiguration(now);
  } else if (configuration.Has(options_.self) && local_.has_content()) {
    primary_.StepDown();
    following_.BecomeSecondary(now);
    if (primary_.peers().IsDead(configuration_.primary)) {
      ProposePromotion(false, now);
    }
  } else {
    Leave();
  }
}

void Replica::Leave() {
  if (role() != Role::kNone) {
    host_.Clear(bucket_);
  }
  local_.Clear();
  primary_.ForgetDurable();
  primary_.StepDown();
  following_.Stop();
}

// --- Promotion

void Replica::ProposePromotion(bool released, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_promotion");
  if (role() == Role::kSecondary) {
    detect_seconds_ = Seconds(now - following_.last_beacon());
    replace_seconds_ = 0;
  }
  following_.StopPromising();
  proposals_.Propose(Proposal::Kind::kPromote, {}, released, now);
}

void Replica::Inherit(const ServerId& from, Clock::TimePoint now) {
  if (from == configuration_.primary &&
      (role() == Role::kSecondary ||
       (role() == Role::kProposing && !proposals_.binding()->released))) {
    ADAMANT_FAILPOINT("replica/inherit");
    ProposePromotion(true, now);
  }
}

void Replica::Loaded(Clock::TimePoint now) { primary_.OnLoaded(now); }

// --- Deaths and time

void Replica::OnDead(const std::vector<ServerId>& dead, Clock::TimePoint now) {
  primary_.OnDead(dead, now);
  if (role() == Role::kSecondary && primary_.peers().IsDead(configuration_.primary)) {
    ProposePromotion(false, now);
  }
}

void Replica::Tick(Clock::TimePoint now) {
  if (role() == Role::kSecondary && now >= following_.promised_until()) {
    return ProposePromotion(false, now);
  }
  primary_.Tick(now);
  proposals_.Repeat(now);
}

Clock::TimePoint Replica::NextTick() const {
  const Clock::TimePoint next = std::min(proposals_.NextRepeat(), primary_.NextTick());
  return role() == Role::kSecondary ? std::min(next, following_.promised_until()) : next;
}

ReplicaStatus Replica::status() const {
  return {.configuration_version = configuration_.version,
          .committed = log().committed(),
          .prepared = log().prepared(),
          .slowest = primary_.peers().AckedByAll(log().persisted()),
          .failover = {.detect_seconds = detect_seconds_,
                       .replace_seconds = replace_seconds_,
                       .reconcile_seconds = primary_.reconcile_seconds()}};
}

// --- What the primary is asked for

bool Replica::CanAppend() const { return primary_.CanAppend(); }

Lsn Replica::Append(Entry entry, Clock::TimePoint now) {
  return primary_.Append(std::move(entry), now);
}

bool Replica::CanRead(Clock::TimePoint now) const { return primary_.CanRead(now); }

// --- The disk and copies

void Replica::Persisted(std::uint64_t ticket, Clock::TimePoint now) {
  if (local_.log().OnPersisted(ticket)) {
    IsPrimary() ? primary_.TryCommit(now) : following_.OnPersisted();
  }
}

void Replica::Flushed(Lsn lsn) {
  local_.log().OnFlushed(lsn);
  IsPrimary() ? primary_.RaiseDurable() : following_.OnFlushed();
}

void Replica::RequestFlush(Clock::TimePoint now) { primary_.RequestFlush(now); }

void Replica::Copied(std::uint64_t copy, Clock::TimePoint now) { primary_.OnCopied(copy, now); }

void Replica::Installed(std::uint64_t copy) { following_.OnInstalled(copy); }

// --- Messages

void Replica::OnConnected(const ServerId& peer, Clock::TimePoint now) {
  IsPrimary() ? primary_.OnConnected(peer, now) : following_.OnConnected(peer);
}

void Replica::OnMessage(const ServerId& from, const PeerMessage& message, Clock::TimePoint now) {
  if (const auto* beacon = std::get_if<Beacon>(&message.kind);
      beacon != nullptr && message.configuration_version > configuration_.version &&
      beacon->primary == from) {
    Adopt({.version = message.configuration_version,
           .generation = beacon->generation,
           .primary = beacon->primary,
           .replicas = beacon->replicas,
           .created = true},
          now);
  }
  if (const auto* begin = std::get_if<CopyBegin>(&message.kind);
      begin != nullptr && message.configuration_version > configuration_.version) {
    Adopt({.version = message.configuration_version,
           .generation = begin->generation,
           .primary = from,
           .created = true},
          now);
  }
  if (message.configuration_version == configuration_.version) {
    IsPrimary() ? primary_.OnMessage(from, message, now) : Follow(from, message, now);
  }
}

void Replica::Follow(const ServerId& from, const PeerMessage& message, Clock::TimePoint now) {
  if (const auto* beacon = std::get_if<Beacon>(&message.kind)) {
    if (!following_.OnBeacon(from, *beacon, now)) {
      Leave();
    }
  } else if (const auto* prepare = std::get_if<Prepare>(&message.kind)) {
    if (!following_.OnPrepare(from, *prepare)) {
      Leave();
    }
  } else if (std::holds_alternative<Released>(message.kind)) {
    Inherit(from, now);
  } else if (const auto* begin = std::get_if<CopyBegin>(&message.kind);
             begin != nullptr && following_.Learns(from, *begin)) {
    ADAMANT_FAILPOINT("copy/learn");
    Leave();
    following_.BeginCopy(*begin);
  }
}

}  // namespace adamant::parameter_server
