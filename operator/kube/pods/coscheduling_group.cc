#include "operator/kube/pods/coscheduling_group.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube/api/orphans.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

constexpr char kMembers[] = "adamant.dev/members";  // annotation: as minMember, as it was written

int MembersOf(const Json& group, int otherwise) {
  const std::string text = StringAt(group, {"metadata", "annotations", kMembers});
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

// Of a group that changed or vanished meanwhile, the next look decides.
absl::Status UnlessChanged(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace

absl::Status KeepPodGroup(const Client& client,
                          const JobIdentity& job,
                          const std::string& name,
                          int processes,
                          bool begins) {
  const ObjectKey key{job.key.ns, name};
  Json wanted = {{"metadata", {{"annotations", {{kMembers, std::to_string(processes)}}}}},
                 {"spec", {{"minMember", processes}}}};
  const auto there = client.Get(kPodGroups, key);
  if (absl::IsNotFound(there.status())) {
    wanted["metadata"].update(MetadataOf(job, name));
    const absl::Status created = client.Create(kPodGroups, std::move(wanted)).status();
    return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;
  }
  if (!there.ok()) {
    return there.status();
  }
  if (!IsOf(*there, job)) {
    return OwnerOf(*there).name.empty() ? absl::OkStatus()
                                        : MakeWay(client, kPodGroups, *there, job);
  }
  const int members = begins ? processes : std::min(processes, MembersOf(*there, processes));
  if (IntAt(*there, {"spec", "minMember"}) == members && MembersOf(*there, 0) == members) {
    return absl::OkStatus();
  }
  wanted["metadata"]["uid"] = UidOf(*there);
  wanted["metadata"]["annotations"][kMembers] = std::to_string(members);
  wanted["spec"]["minMember"] = members;
  return UnlessChanged(client.Patch(kPodGroups, key, PatchType::kMerge, wanted).status());
}

}  // namespace adamant::kube
