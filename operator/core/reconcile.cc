#include "operator/core/reconcile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace adamant::controller {
namespace {

using State = ObservedPod::State;

// What has happened to the process of a pod that does not run any more.
ProcessExited Exit(const ObservedPod& pod) {
  const bool ended = pod.state == State::kEnded;
  std::string how = ended ? pod.how : "is gone: its pod was deleted";
  if (pod.given_up && !ended) {
    how = "is given up: its node is lost";
  }
  return {.id = pod.process.id,
          .generation = pod.process.generation,
          .how = std::move(how),
          .bad_configuration = ended && pod.bad_configuration && !pod.disrupted,
          .proved = ended,
          .counted = ended && !pod.disrupted};
}

// By slot, the highest generation whose pod has ended: it is kept.
std::map<MemberId, std::uint64_t> NewestEnded(std::span<const ObservedPod> pods) {
  std::map<MemberId, std::uint64_t> newest;
  for (const ObservedPod& pod : pods) {
    if (pod.state == State::kEnded) {
      std::uint64_t& generation = newest[pod.process.id];
      generation = std::max(generation, pod.process.generation);
    }
  }
  return newest;
}

}  // namespace

PodPlan Reconcile(std::span<const StartProcess> wanted, std::span<const ObservedPod> pods) {
  PodPlan plan;
  const std::set<StartProcess> wishes(wanted.begin(), wanted.end());
  std::set<StartProcess> known;
  for (const ObservedPod& pod : pods) {
    known.insert(pod.process);
  }
  std::ranges::set_difference(wishes, known, std::back_inserter(plan.create));
  const auto newest_ended = NewestEnded(pods);
  for (const ObservedPod& pod : pods) {
    const bool is_wanted = wishes.contains(pod.process);
    switch (pod.state) {
      case State::kPending:
      case State::kRunning:
        if (pod.given_up) {
          plan.exited.push_back(Exit(pod));
          plan.remove.push_back({.name = pod.name, .uid = pod.uid, .at_once = true});
        } else if (!is_wanted && !pod.deleting) {
          plan.remove.push_back({.name = pod.name, .uid = pod.uid});
        }
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

}  // namespace adamant::controller
