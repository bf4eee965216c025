#include "operator/core/buckets/configurations.h"

#include <algorithm>

#include "services/common/base/failpoint.h"

namespace adamant::controller {

Configurations::Configurations(JobState& state, std::uint32_t min_in_sync)
    : state_(state), min_in_sync_(min_in_sync), service_(state.buckets.size(), Service::kAwaited) {}

std::vector<std::uint64_t> Configurations::Generations() const {
  std::vector<std::uint64_t> generations;
  for (const Configuration& configuration : state_.buckets) {
    generations.push_back(configuration.generation);
  }
  return generations;
}

void Configurations::Assign(const std::vector<ServerId>& primaries) {
  state_.buckets.clear();
  for (const ServerId& primary : primaries) {
    Configuration configuration;
    configuration.version = 1;
    configuration.generation = 1;
    configuration.primary = primary;
    configuration.replicas = {primary};
    state_.buckets.push_back(std::move(configuration));
  }
  service_.assign(primaries.size(), Service::kAwaited);
  changed_ = true;
}

bool Configurations::Allows(const Proposal& proposal) const {
  if (proposal.bucket >= size() || At(proposal.bucket).version != proposal.configuration_version) {
    return false;
  }
  const Configuration& configuration = At(proposal.bucket);
  switch (proposal.kind) {
    case Proposal::Kind::kPromote:
      return proposal.proposer != configuration.primary && configuration.Has(proposal.proposer);
    case Proposal::Kind::kDrop:
      return proposal.proposer == configuration.primary &&
             proposal.subject != configuration.primary &&
             (!configuration.Has(proposal.subject) || MayLeave(configuration, proposal.subject));
    case Proposal::Kind::kAdd:
      return proposal.proposer == configuration.primary &&
             configuration.learner == proposal.subject && !configuration.Has(proposal.subject);
  }
  return false;
}

bool Configurations::MayLeave(const Configuration& configuration, ServerId replica) const {
  return configuration.replicas.size() > min_in_sync_ ||
         std::find(state_.dead.begin(), state_.dead.end(), replica) != state_.dead.end();
}

void Configurations::Apply(const Proposal& proposal) {
  ADAMANT_FAILPOINT("controller/change_record");
  Configuration& configuration = state_.buckets[proposal.bucket];
  switch (proposal.kind) {
    case Proposal::Kind::kPromote:
      if (!proposal.released && MayLeave(configuration, configuration.primary)) {
        std::erase(configuration.replicas, configuration.primary);
      }
      configuration.primary = proposal.proposer;
      service_[proposal.bucket] = Service::kAwaited;
      break;
    case Proposal::Kind::kDrop:
      std::erase(configuration.replicas, proposal.subject);
      break;
    case Proposal::Kind::kAdd:
      configuration.replicas.push_back(proposal.subject);
      break;
  }
  Change(proposal.bucket);
}

void Configurations::Restore(BucketId bucket, ServerId server, std::uint64_t snapshot) {
  Configuration& configuration = state_.buckets[bucket];
  ADAMANT_FAILPOINT("controller/restore");
  ++configuration.generation;
  configuration.primary = server;
  configuration.replicas = {server};
  configuration.restored_snapshot = snapshot;
  service_[bucket] = Service::kRestoring;
  Change(bucket);
}

void Configurations::MakeAnew(BucketId bucket, ServerId server, std::uint64_t snapshot) {
  Configuration& configuration = state_.buckets[bucket];
  ++configuration.generation;
  configuration.created = false;
  configuration.restored_snapshot = snapshot;
  Reassign(bucket, server);
}

void Configurations::Reassign(BucketId bucket, ServerId server) {
  Configuration& configuration = state_.buckets[bucket];
  configuration.primary = server;
  configuration.replicas = {server};
  service_[bucket] = Service::kAwaited;
  Change(bucket);
}

// A hint that the change has fulfilled or made void goes with it.
void Configurations::Change(BucketId bucket) {
  Configuration& configuration = state_.buckets[bucket];
  ++configuration.version;
  if (configuration.learner && configuration.Has(*configuration.learner)) {
    configuration.learner.reset();
  }
  if (configuration.departing && !configuration.Has(*configuration.departing)) {
    configuration.departing.reset();
  }
  if (configuration.successor && (configuration.successor == configuration.primary ||
                                  !configuration.Has(*configuration.successor))) {
    configuration.successor.reset();
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
  Configuration& configuration = state_.buckets[bucket];
  if (configuration.learner != hint.learner || configuration.departing != hint.departing ||
      configuration.successor != hint.successor) {
    configuration.learner = hint.learner;
    configuration.departing = hint.departing;
    configuration.successor = hint.successor;
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
