#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/core/state/actions.h"

namespace adamant::kube {

/// Facts that are known of a pod. What a reconciler sees may be old: a pod that it has made counts
/// as pending until it sees it, one that it saw go away as gone.
struct ObservedPod {
  enum class State : std::uint8_t {
    kPending,  ///< exists, its container has not started
    kRunning,
    kEnded,  ///< its container has ended for good, which is proof
    kGone,   ///< the object was deleted, which is none
  };

  controller::StartProcess process{};  ///< slot and generation that it was made for
  std::string name{};
  std::string uid{};
  State state = State::kPending;
  std::string how{};               ///< kEnded: "exited with code 1 (Error)"
  std::optional<int> exit_code{};  ///< kEnded: of its container, where that is known
  bool bad_configuration = false;  ///< kEnded: another would end the same way
  bool deleting = false;           ///< somebody has asked for its deletion
  bool disrupted = false;  ///< evicted, preempted, or deleted by somebody: no fault of its own
  controller::LossReason reason = controller::LossReason::kFailed;  ///< if its end is its process's
  std::optional<std::chrono::milliseconds> node_away{};  ///< for how long; absent: it is there
  bool node_out_of_service = false;  ///< marked so, which is proof: nothing runs on it any more
  /// For how long it has waited for the node that its volume is on, which takes no pods, while
  /// nobody needs that volume; absent: it does not.
  std::optional<std::chrono::milliseconds> shut_out{};
  bool moves = false;  ///< it was deleted for its process to run on another node
  /// It has no node, and gets none, as this claim of its volume is gone, or going; empty: it is
  /// not.
  std::string deleted_claim{};
};

struct DeletePod {
  std::string name{};
  std::string uid{};
  bool at_once = false;  ///< without waiting for its node to confirm

  bool operator==(const DeletePod&) const = default;
};

/// Times after which what is on a node that is away is given up.
struct NodeTimeouts {
  std::chrono::milliseconds unreachable{20'000};   ///< then its processes count as lost
  std::chrono::milliseconds force_delete{30'000};  ///< more, and their pods are deleted by force
  std::chrono::milliseconds cordoned{60'000};      ///< then pods are shut out for good
};

/// Returns true if nobody waits any longer for this pod's node to confirm that it has ended.
bool IsToBeForced(const ObservedPod& pod, const NodeTimeouts& timeouts);

/// Steps that make the pods what they should be.
struct PodPlan {
  std::vector<controller::StartProcess> create{};
  std::vector<DeletePod> remove{};
  std::vector<controller::ProcessExited> exited{};  ///< for JobController::Handle; may be repeated
  std::optional<std::chrono::milliseconds> again_in{};  ///< when time alone would change the plan
};

/// Compares the processes that there should be (JobController::Wanted) with the pods that there
/// are. A function of its arguments alone: called again on what its plan has led to, it asks for
/// nothing more, and on an older view for nothing that was not asked for before.
///
/// The newest ended pod of a slot is left for its logs until the next one of that slot has ended.
PodPlan Reconcile(std::span<const controller::StartProcess> wanted,
                  std::span<const ObservedPod> pods,
                  const NodeTimeouts& timeouts = {});

}  // namespace adamant::kube
