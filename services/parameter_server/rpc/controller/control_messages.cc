#include "services/parameter_server/rpc/controller/control_messages.h"

#include <algorithm>
#include <optional>
#include <set>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/seconds.h"
#include "services/parameter_server/rpc/messages/convert.h"

namespace adamant::parameter_server {
namespace {

static_assert(static_cast<int>(Proposal::Kind::kTakeOver) == v1::Proposal::TAKE_OVER);
static_assert(static_cast<int>(Proposal::Kind::kDrop) == v1::Proposal::DROP);
static_assert(static_cast<int>(Proposal::Kind::kAdd) == v1::Proposal::ADD);

Configuration ConfigurationOf(const v1::Bucket& bucket) {
  const auto advice = [](bool given, const v1::Holder& holder) {
    return given ? std::optional(HolderOf(holder)) : std::nullopt;
  };
  Configuration configuration{.epoch = bucket.epoch(),
                              .generation = bucket.generation(),
                              .primary = HolderOf(bucket.primary()),
                              .created = bucket.created(),
                              .learner = advice(bucket.has_learner(), bucket.learner()),
                              .leaver = advice(bucket.has_leaver(), bucket.leaver()),
                              .heir = advice(bucket.has_heir(), bucket.heir()),
                              .restored_snapshot = bucket.restored_snapshot()};
  for (const v1::Holder& member : bucket.members()) {
    configuration.members.push_back(HolderOf(member));
  }
  return configuration;
}

// Holders that records name.
std::set<Holder> NamedIn(const v1::Membership& membership) {
  std::set<Holder> named;
  for (const v1::Bucket& bucket : membership.buckets()) {
    for (const v1::Holder& member : bucket.members()) {
      named.insert(HolderOf(member));
    }
    if (bucket.has_learner()) {
      named.insert(HolderOf(bucket.learner()));
    }
  }
  return named;
}

}  // namespace

std::vector<Configuration> ConfigurationsOf(const v1::Membership& membership) {
  std::vector<Configuration> configurations;
  for (const v1::Bucket& bucket : membership.buckets()) {
    configurations.push_back(ConfigurationOf(bucket));
  }
  return configurations;
}

std::vector<Holder> DeadOf(const v1::Membership& membership) {
  std::vector<Holder> dead;
  for (const v1::Holder& holder : membership.dead()) {
    dead.push_back(HolderOf(holder));
  }
  return dead;
}

PeerAddresses PeersOf(const v1::Membership& membership,
                      const Holder& self,
                      const PeerAddresses& known) {
  PeerAddresses peers;
  std::set<std::uint32_t> slots;
  for (const v1::Member& member : membership.members()) {
    if (member.role() == v1::PARAMETER_SERVER && !member.replication_address().empty()) {
      slots.insert(member.slot());
      peers[{member.slot(), member.incarnation()}] = member.replication_address();
    }
  }
  const std::set<Holder> named = NamedIn(membership);
  const std::vector<Holder> dead = DeadOf(membership);
  for (const auto& [holder, address] : known) {
    if (named.contains(holder) && !slots.contains(holder.slot) &&
        std::ranges::find(dead, holder) == dead.end()) {
      peers[holder] = address;
    }
  }
  peers.erase(self);
  return peers;
}

bool TookOver(const BucketReport& report) {
  return report.failover.detect + report.failover.replace > Clock::Duration::zero();
}

void EncodeProposals(std::span<const Proposal> proposals, v1::Proposals& out) {
  for (const Proposal& proposal : proposals) {
    v1::Proposal& line = *out.add_proposals();
    line.set_bucket(proposal.bucket);
    line.set_epoch(proposal.epoch);
    line.set_kind(static_cast<v1::Proposal::Kind>(proposal.kind));
    EncodeHolder(proposal.proposer, *line.mutable_proposer());
    EncodeHolder(proposal.subject, *line.mutable_subject());
    line.set_last_lsn(proposal.last_lsn);
    line.set_released(proposal.released);
  }
}

void EncodeReports(std::span<const BucketReport> reports, v1::BucketsReady& out) {
  for (const BucketReport& report : reports) {
    v1::BucketState& state = *out.add_buckets();
    state.set_bucket(report.bucket);
    state.set_epoch(report.epoch);
    state.set_lost(report.lost);
    state.set_detail(report.detail);
    state.set_updates(report.updates);
    if (TookOver(report)) {
      v1::FailoverTimes& times = *state.mutable_failover();
      times.set_detect_seconds(Seconds(report.failover.detect));
      times.set_replace_seconds(Seconds(report.failover.replace));
      times.set_reconcile_seconds(Seconds(report.failover.reconcile));
    }
  }
}

void EncodeStored(const StoredBuckets& stored, v1::StoredBuckets& out) {
  out.set_previous_incarnation(stored.previous_incarnation);
  for (const StoredBucket& bucket : stored.buckets) {
    v1::StoredBucket& line = *out.add_buckets();
    line.set_bucket(bucket.bucket);
    line.set_generation(bucket.generation);
    line.set_updates(bucket.updates);
    line.set_complete(bucket.complete);
    line.set_detail(bucket.detail);
    line.set_log_epoch(bucket.log_epoch);
    line.set_log_lsn(bucket.log_lsn);
  }
}

void EncodeProgress(std::span<const BucketProgress> progress, v1::ParameterServerProgress& out) {
  for (const BucketProgress& bucket : progress) {
    v1::BucketProgress& line = *out.add_buckets();
    line.set_bucket(bucket.bucket);
    line.set_epoch(bucket.epoch);
    line.set_committed(bucket.committed);
    line.set_lag(bucket.lag);
    line.set_updates(bucket.updates);
    line.set_serving(bucket.serving);
  }
}

void EncodeSnapshot(std::span<const SnapshotBucket> buckets, v1::SnapshotTaken& out) {
  for (const SnapshotBucket& bucket : buckets) {
    v1::SnapshotBucket& line = *out.add_buckets();
    line.set_bucket(bucket.bucket);
    line.set_epoch(bucket.epoch);
    line.set_generation(bucket.generation);
    line.set_updates(bucket.updates);
    line.set_checksum(bucket.checksum);
  }
}

}  // namespace adamant::parameter_server
