#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/kube_client/api/client.h"

namespace adamant::v1 {
class JobSpec;
}  // namespace adamant::v1

// What is said to those who place all pods of a job together, or none (spec.pods.scheduling), and
// above all to Kueue, which takes part in a group's life to its end.
namespace adamant::kube {

struct PodView;

/// Information in a pod about the pod group of Kueue that it is in.
struct GroupMark {
  std::string name{};  ///< empty: it is in none
  int pods = 0;        ///< of which the group consists
  bool held = false;   ///< Kueue's finalizer is on it: it counts, also when it has ended
  bool ends = false;   ///< when all pods of the group have ended, the group has
};

/// A pod group of Kueue that pods are to be in.
struct PodGroup {
  std::string name{};
  int pods = 0;  ///< that it was made for; 0: it is not made yet
  /// Slots whose pods in it have ended with code 0: Kueue takes them for done, and any other pod in
  /// their place for one too many.
  std::set<controller::SlotId> done{};
};

/// The name that the pods of a job's `start` have in common, and no others: under it Kueue counts
/// also those that have ended.
std::string GroupName(const std::string& job_uid, std::uint64_t start);

/// The group of that name, as its pods show it.
PodGroup GroupOf(std::string name, const std::vector<std::shared_ptr<const PodView>>& pods);

/// Adds to the pod of a process what those look at. One that `group`, of Kueue, has no place for is
/// queued alone: a worker more than there were when the group was made, or than were left.
void AddGang(const PodGroup& group,
             const controller::SlotId& process,
             const v1::JobSpec& spec,
             nlohmann::json& pod);

GroupMark ReadGroup(const nlohmann::json& pod);

/// Tells Kueue that no pod of these groups is replaced any more, but of the group named `except`.
/// Else it would wait for replacements, with their quota, and let no pod that was deleted go. OK:
/// it has been told, or is not concerned. Errors: those of the client. Threads: any.
absl::Status EndGroups(const Client& client,
                       const std::vector<std::shared_ptr<const PodView>>& pods,
                       const std::string& except = "");

/// Tells Kueue that a pod has failed whose node is lost: it would count as running until its node
/// says something else, and its replacement as one too many. OK also where it is gone. Errors:
/// those of the client. Threads: any.
absl::Status MarkFailed(const Client& client, const PodView& pod);

}  // namespace adamant::kube
