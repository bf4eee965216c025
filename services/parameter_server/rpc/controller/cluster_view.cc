#include "services/parameter_server/rpc/controller/cluster_view.h"

#include <algorithm>
#include <utility>

#include "services/parameter_server/rpc/controller/peer_addresses.h"

namespace adamant::parameter_server {
namespace {

std::uint64_t TermOf(const protocol::Membership& membership) { return membership.version >> 32; }

}  // namespace

ClusterView::ClusterView(const Links& links, const ReplicationMetrics& metrics)
    : links_(links), metrics_(metrics) {}

void ClusterView::OnMembership(protocol::Membership membership) {
  const MutexLock lock(mutex_);
  const bool new_term = membership_.has_value() && TermOf(membership) > TermOf(*membership_);
  membership_ = std::move(membership);
  if (!stored_) {
    return;
  }
  if (new_term) {
    SendStored();
  }
  Apply();
}

void ClusterView::OnStored() {
  const MutexLock lock(mutex_);
  stored_ = true;
  SendStored();
  if (membership_.has_value()) {
    Apply();
  }
}

void ClusterView::OnRejoined() {
  const MutexLock lock(mutex_);
  if (!stored_) {
    return;
  }
  SendStored();
  links_.controller.Send(ReadyOf(links_.core.Reports()));
}

bool ClusterView::HasSuccessors() const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(configurations_, [this](const Configuration& bucket) {
    return bucket.primary == links_.core.options().self && bucket.replicas.size() > 1;
  });
}

std::optional<std::uint32_t> ClusterView::OwnerOf(std::uint32_t part) const {
  const MutexLock lock(mutex_);
  return membership_.has_value() && part < membership_->part_owner.size()
             ? std::optional(membership_->part_owner[part])
             : std::nullopt;
}

void ClusterView::Apply() {
  const std::vector<Configuration>& configurations = membership_->buckets;
  for (std::size_t i = 0; i < std::min(configurations.size(), configurations_.size()); ++i) {
    const bool restored = configurations[i].generation > configurations_[i].generation &&
                          configurations[i].primary == links_.core.options().self;
    if (restored && configurations_[i].generation > 0) {
      metrics_.rollbacks.Increment();
    }
  }
  configurations_ = configurations;
  CountRoles();
  peers_ = PeersOf(*membership_, links_.core.options().self, peers_);
  links_.peers.Set(peers_);
  links_.core.SetConfigurations(configurations_, membership_->dead);
}

void ClusterView::CountRoles() {
  const ServerId& self = links_.core.options().self;
  int primaries = 0;
  int secondaries = 0;
  int learners = 0;
  for (const Configuration& bucket : configurations_) {
    primaries += bucket.primary == self ? 1 : 0;
    secondaries += bucket.primary != self && bucket.Has(self) ? 1 : 0;
    learners += bucket.learner == self ? 1 : 0;
  }
  metrics_.primaries.Set(primaries);
  metrics_.secondaries.Set(secondaries);
  metrics_.learners.Set(learners);
}

void ClusterView::SendStored() { links_.controller.Send(links_.core.Stored()); }

}  // namespace adamant::parameter_server
