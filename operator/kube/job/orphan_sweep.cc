#include "operator/kube/job/orphan_sweep.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/orphans.h"
#include "operator/kube/pods/coscheduling_group.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/log.h"

namespace adamant::kube {
namespace {

constexpr Resource kKinds[] = {kPods,
                               kPersistentVolumeClaims,
                               kConfigMaps,
                               kPodDisruptionBudgets,
                               kNetworkPolicies,
                               kShardMaps,
                               kPodGroups};

}  // namespace

struct OrphanSweep::Pass {
  std::set<std::string> found;
  std::map<std::string, bool> exists;  // by namespace, name and UID of a job
  std::size_t deleted = 0;
};

OrphanSweep::OrphanSweep(Client client, std::vector<std::string> namespaces, IsKnown is_known)
    : client_(std::move(client)),
      namespaces_(namespaces.empty() ? std::vector<std::string>{""} : std::move(namespaces)),
      is_known_(std::move(is_known)) {}

std::size_t OrphanSweep::Sweep() {
  Pass pass;
  for (const std::string& ns : namespaces_) {
    for (const Resource& resource : kKinds) {
      SweepKind(resource, ns, pass);
    }
  }
  found_ = std::move(pass.found);
  return pass.deleted;
}

void OrphanSweep::SweepKind(const Resource& resource, const std::string& ns, Pass& pass) const {
  std::vector<Json> orphans;  // their metadata
  const auto read =
      client_.List(resource,
                   {.ns = ns, .label_selector = kOursSelector},
                   {.begin = [&] { orphans.clear(); },
                    .object =
                        [&](Json& object) {
                          if (!OwnerOf(object).name.empty() &&
                              StringAt(object, {"metadata", "deletionTimestamp"}).empty()) {
                            orphans.push_back({{"metadata", std::move(object["metadata"])}});
                          }
                        }});
  if (absl::IsNotFound(read.status())) {
    return;  // a kind that this cluster does not know
  }
  if (!read.ok()) {
    LogWarning("cannot look for what jobs have left behind",
               {{"kind", resource.kind}, {"error", read.status().ToString()}});
    return;
  }
  for (const Json& object : orphans) {
    if (!IsOrphan(object, pass)) {
      continue;
    }
    const std::string uid = UidOf(object);
    if (!found_.contains(uid) || pass.deleted >= kMostDeleted) {
      pass.found.insert(uid);
      continue;
    }
    const absl::Status deleted = DeleteThis(client_, resource, object);
    LogWarning("deletes what a job has left behind that does not exist any more",
               {{"object", std::string(resource.kind) + " " + ToString(KeyOf(object))},
                {"of", OwnerOf(object).uid},
                {"outcome", deleted.ToString()}});
    if (deleted.ok()) {
      ++pass.deleted;
    } else {
      pass.found.insert(uid);
    }
  }
}

// Only what the API says of a job now counts against it.
bool OrphanSweep::IsOrphan(const Json& object, Pass& pass) const {
  const Owner owner = OwnerOf(object);
  const ObjectKey job{KeyOf(object).ns, owner.name};
  if (is_known_(job, owner.uid)) {
    return false;
  }
  const auto [asked, first] = pass.exists.try_emplace(ToString(job) + ' ' + owner.uid, true);
  if (first) {
    const auto exists = Exists(client_, job.ns, owner);
    asked->second = !exists.ok() || *exists;
  }
  return !asked->second;
}

}  // namespace adamant::kube
