#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube_client/api/client.h"

namespace adamant::kube {

/// Deletes what TrainingJobs have left behind that do not exist any more, and no new job's name
/// brings to light: Kubernetes' garbage collector can miss it for good. An object counts whose
/// labels and owner name the same job, by name and UID; one without that owner (`kubectl delete
/// --cascade=orphan` takes it away) is somebody's, who wanted it kept. Only what two sweeps in a
/// row have found is deleted, by its UID. Threads: one at a time.
class OrphanSweep {
 public:
  /// Of one sweep; the rest is for later ones.
  static constexpr std::size_t kMostDeleted = 20;

  /// Tells whether there is a job of this name and UID, as far as it is known without asking.
  using IsKnown = std::function<bool(const ObjectKey& job, const std::string& uid)>;

  /// `namespaces`: where it looks; empty: in all.
  OrphanSweep(Client client, std::vector<std::string> namespaces, IsKnown is_known);

  /// Looks at all pods, claims, ConfigMaps, disruption budgets, ShardMaps and PodGroups that bear
  /// the operator's label, and asks for the jobs of those that are not known live. What the API
  /// does not answer is left for the next sweep. Returns how many objects were deleted; each is
  /// logged.
  std::size_t Sweep();

  /// Returns true if the last sweep has found what the next one is to delete.
  [[nodiscard]] bool has_found() const { return !found_.empty(); }

 private:
  struct Pass;

  void SweepKind(const Resource& resource, const std::string& ns, Pass& pass) const;
  [[nodiscard]] bool IsOrphan(const Json& object, Pass& pass) const;

  const Client client_;
  const std::vector<std::string> namespaces_;  // {""}: all
  const IsKnown is_known_;
  std::set<std::string> found_;  // UIDs of what the last sweep found and did not delete
};

}  // namespace adamant::kube
