#include "operator/kube/pods/reconcile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace adamant::kube {
namespace {

using controller::LossCause;
using controller::LossReason;
using controller::ProcessExited;
using controller::SlotId;
using controller::StartProcess;
using State = ObservedPod::State;

bool IsGivenUp(const ObservedPod& pod, const NodeTimeouts& timeouts) {
  return pod.node_out_of_service || (pod.node_away && *pod.node_away >= timeouts.unreachable);
}

bool IsShutOut(const ObservedPod& pod, const NodeTimeouts& timeouts) {
  return pod.shut_out && *pod.shut_out >= timeouts.cordoned;
}

// When any of these will change though nothing happens.
std::optional<std::chrono::milliseconds> NextBound(const ObservedPod& pod,
                                                   const NodeTimeouts& timeouts) {
  if (pod.shut_out && !IsShutOut(pod, timeouts)) {
    return timeouts.cordoned - *pod.shut_out;
  }
  if (!pod.node_away || IsToBeForced(pod, timeouts)) {
    return std::nullopt;
  }
  const auto bound = IsGivenUp(pod, timeouts) ? timeouts.unreachable + timeouts.force_delete
                                              : timeouts.unreachable;
  return bound - *pod.node_away;
}

// What has happened to the process of a pod whose container has ended, or that is gone.
ProcessExited Exit(const ObservedPod& pod) {
  const bool ended = pod.state == State::kEnded;
  return {.id = pod.process.id,
          .generation = pod.process.generation,
          .how = pod.moves ? "moves to another node"
                 : ended   ? pod.how
                           : "is gone: its pod was deleted",
          .bad_configuration = ended && pod.bad_configuration && !pod.disrupted,
          .proved = ended,
          .cause = ended && !pod.disrupted ? LossCause::kExit : LossCause::kDisruption,
          .exit_code = pod.exit_code,
          .reason = ended || pod.reason == LossReason::kEvicted ? pod.reason : LossReason::kDeleted,
          .moves = pod.moves};
}

ProcessExited Loss(const ObservedPod& pod) {
  std::string how = "is lost: its node is out of service";
  if (!pod.deleted_claim.empty()) {
    how = "begins anew on another volume: its claim " + pod.deleted_claim + " was deleted";
  } else if (pod.shut_out) {
    how = "leaves its volume, which is on a node that takes no pods";
  } else if (!pod.node_out_of_service) {
    const auto away = std::chrono::duration_cast<std::chrono::seconds>(*pod.node_away);
    how = "is given up: its node has been away for " + std::to_string(away.count()) + " s";
  }
  return {.id = pod.process.id,
          .generation = pod.process.generation,
          .how = std::move(how),
          .proved = pod.node_out_of_service,
          .cause = LossCause::kNodeLost,
          .reason = LossReason::kNodeLost,
          .volume_deleted = !pod.deleted_claim.empty()};
}

// By slot, the highest generation whose pod has ended: it is kept.
std::map<SlotId, std::uint64_t> NewestEnded(std::span<const ObservedPod> pods) {
  std::map<SlotId, std::uint64_t> newest;
  for (const ObservedPod& pod : pods) {
    if (pod.state == State::kEnded) {
      std::uint64_t& generation = newest[pod.process.id];
      generation = std::max(generation, pod.process.generation);
    }
  }
  return newest;
}

// A pod whose container has not ended, as far as anybody can tell.
void PlanLive(const ObservedPod& pod, bool wanted, const NodeTimeouts& timeouts, PodPlan& plan) {
  const bool given_up =
      IsGivenUp(pod, timeouts) || IsShutOut(pod, timeouts) || !pod.deleted_claim.empty();
  if (given_up) {
    plan.exited.push_back(Loss(pod));
  }
  if (IsToBeForced(pod, timeouts)) {
    plan.remove.push_back({.name = pod.name, .uid = pod.uid, .at_once = true});
  } else if ((given_up || !wanted) && !pod.deleting) {  // goes when its node is back
    plan.remove.push_back({.name = pod.name, .uid = pod.uid});
  }
  if (const auto bound = NextBound(pod, timeouts);
      bound && (!plan.again_in || *bound < *plan.again_in)) {
    plan.again_in = bound;
  }
}

}  // namespace

bool IsToBeForced(const ObservedPod& pod, const NodeTimeouts& timeouts) {
  return pod.node_out_of_service ||
         (pod.node_away && *pod.node_away >= timeouts.unreachable + timeouts.force_delete);
}

PodPlan Reconcile(std::span<const StartProcess> wanted,
                  std::span<const ObservedPod> pods,
                  const NodeTimeouts& timeouts) {
  PodPlan plan;
  const std::set<StartProcess> wishes(wanted.begin(), wanted.end());
  std::set<StartProcess> known;
  for (const ObservedPod& pod : pods) {
    known.insert(pod.process);
  }
  std::ranges::set_difference(wishes, known, std::back_inserter(plan.create));
  const auto newest_ended = NewestEnded(pods);
  for (const ObservedPod& pod : pods) {
    switch (pod.state) {
      case State::kPending:
      case State::kRunning:
        PlanLive(pod, wishes.contains(pod.process), timeouts, plan);
        break;
      case State::kEnded:
        plan.exited.push_back(Exit(pod));
        if (pod.process.generation < newest_ended.at(pod.process.id) && !pod.deleting) {
          plan.remove.push_back({.name = pod.name, .uid = pod.uid});
        }
        break;
      case State::kGone:
        plan.exited.push_back(Exit(pod));
        break;
    }
  }
  return plan;
}

}  // namespace adamant::kube
