#include "operator/core/buckets/configurations.h"

#include <algorithm>

#include "services/common/base/failpoint.h"

namespace adamant::controller {

Configurations::Configurations(JobState& state, std::uint32_t min_in_sync)
    : state_(state), min_in_sync_(min_in_sync), service_(state.buckets.size(), Service::kAwaited) {}

std::vector<std::uint64_t> Configurations::Generations() const {
  std::vector<std::uint64_t> generations;
  for (const Configuration& record : state_.buckets) {
    generations.push_back(record.generation);
  }
  return generations;
}

void Configurations::Assign(const std::vector<ServerId>& primaries) {
  state_.buckets.clear();
  for (const ServerId& primary : primaries) {
    Configuration record;
    record.version = 1;
    record.generation = 1;
    record.primary = primary;
    record.replicas = {primary};
    state_.buckets.push_back(std::move(record));
  }
  service_.assign(primaries.size(), Service::kAwaited);
  changed_ = true;
}

bool Configurations::Allows(const Proposal& proposal) const {
  if (proposal.bucket >= size() || At(proposal.bucket).version != proposal.configuration_version) {
    return false;
  }
  const Configuration& record = At(proposal.bucket);
  switch (proposal.kind) {
    case Proposal::Kind::kPromote:
      return proposal.proposer != record.primary && record.Has(proposal.proposer);
    case Proposal::Kind::kDrop:
      return proposal.proposer == record.primary && proposal.subject != record.primary &&
             (!record.Has(proposal.subject) || MayLeave(record, proposal.subject));
    case Proposal::Kind::kAdd:
      return proposal.proposer == record.primary && record.learner == proposal.subject &&
             !record.Has(proposal.subject);
  }
  return false;
}

bool Configurations::MayLeave(const Configuration& record, ServerId replica) const {
  return record.replicas.size() > min_in_sync_ ||
         std::find(state_.dead.begin(), state_.dead.end(), replica) != state_.dead.end();
}

void Configurations::Apply(const Proposal& proposal) {
  ADAMANT_FAILPOINT("controller/change_record");
  Configuration& record = state_.buckets[proposal.bucket];
  switch (proposal.kind) {
    case Proposal::Kind::kPromote:
      if (!proposal.released && MayLeave(record, record.primary)) {
        std::erase(record.replicas, record.primary);
      }
      record.primary = proposal.proposer;
      service_[proposal.bucket] = Service::kAwaited;
      break;
    case Proposal::Kind::kDrop:
      std::erase(record.replicas, proposal.subject);
      break;
    case Proposal::Kind::kAdd:
      record.replicas.push_back(proposal.subject);
      break;
  }
  Change(proposal.bucket);
}

void Configurations::Restore(BucketId bucket, ServerId server, std::uint64_t snapshot) {
  Configuration& record = state_.buckets[bucket];
  ADAMANT_FAILPOINT("controller/restore");
  ++record.generation;
  record.primary = server;
  record.replicas = {server};
  record.restored_snapshot = snapshot;
  service_[bucket] = Service::kRestoring;
  Change(bucket);
}

void Configurations::MakeAnew(BucketId bucket, ServerId server, std::uint64_t snapshot) {
  Configuration& record = state_.buckets[bucket];
  ++record.generation;
  record.created = false;
  record.restored_snapshot = snapshot;
  Reassign(bucket, server);
}

void Configurations::Reassign(BucketId bucket, ServerId server) {
  Configuration& record = state_.buckets[bucket];
  record.primary = server;
  record.replicas = {server};
  service_[bucket] = Service::kAwaited;
  Change(bucket);
}

// PlacementHint that the change has fulfilled or made void goes with it.
void Configurations::Change(BucketId bucket) {
  Configuration& record = state_.buckets[bucket];
  ++record.version;
  if (record.learner && record.Has(*record.learner)) {
    record.learner.reset();
  }
  if (record.departing && !record.Has(*record.departing)) {
    record.departing.reset();
  }
  if (record.successor && (record.successor == record.primary || !record.Has(*record.successor))) {
    record.successor.reset();
  }
  changed_ = true;
}

bool Configurations::OnServing(ServerId server,
                               BucketId bucket,
                               ConfigurationVersion configuration_version) {
  if (bucket >= size() || At(bucket).primary != server ||
      At(bucket).version != configuration_version || IsServed(bucket)) {
    return false;
  }
  service_[bucket] = Service::kServed;
  if (!At(bucket).created) {
    state_.buckets[bucket].created = true;
    changed_ = true;
  }
  return true;
}

void Configurations::OnGone(ServerId server) {
  for (BucketId bucket = 0; bucket < size(); ++bucket) {
    if (At(bucket).primary == server && IsServed(bucket)) {
      service_[bucket] = Service::kAwaited;
    }
  }
}

void Configurations::SetHint(BucketId bucket, const PlacementHint& hint) {
  Configuration& record = state_.buckets[bucket];
  if (record.learner != hint.learner || record.departing != hint.departing ||
      record.successor != hint.successor) {
    record.learner = hint.learner;
    record.departing = hint.departing;
    record.successor = hint.successor;
    changed_ = true;
  }
}

Load::Load(std::span<const Configuration> configurations, std::uint32_t servers)
    : primaries(servers), copies(servers) {
  for (const Configuration& configuration : configurations) {
    ++primaries[configuration.primary.slot];
    for (const ServerId& replica : configuration.replicas) {
      ++copies[replica.slot];
    }
    if (configuration.learner) {
      ++copies[configuration.learner->slot];
    }
  }
}

}  // namespace adamant::controller
