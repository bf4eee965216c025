#include "operator/kube/pods/known_pods.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "operator/kube/pods/pod_view.h"

namespace adamant::kube {

using controller::StartProcess;

namespace {

template <typename Map>
void EraseBefore(const StartProcess& process, Map& map) {
  map.erase(map.lower_bound({.id = process.id, .generation = 0}), map.lower_bound(process));
}

}  // namespace

void KnownPods::OnMade(const StartProcess& process, const std::string& uid, Clock::TimePoint now) {
  pods_[process] = {.uid = uid, .seen = false, .ask_at = now + kUnseen};
  refusals_.erase(process);
}

std::vector<KnownPods::Unseen> KnownPods::TakeUnseen(Clock::TimePoint now) {
  std::vector<Unseen> unseen;
  for (auto& [process, pod] : pods_) {
    if (!pod.seen && pod.ask_at <= now) {
      unseen.push_back({.process = process, .uid = pod.uid});
      pod.ask_at = now + kUnseen;
    }
  }
  return unseen;
}

std::optional<Clock::TimePoint> KnownPods::NextUnseen() const {
  std::optional<Clock::TimePoint> next;
  for (const auto& [process, pod] : pods_) {
    if (!pod.seen && (!next || pod.ask_at < *next)) {
      next = pod.ask_at;
    }
  }
  return next;
}

void KnownPods::OnRefused(const StartProcess& process, absl::Status why, Clock::TimePoint until) {
  refusals_.insert_or_assign(process, Refusal{.why = std::move(why), .until = until});
}

absl::Status KnownPods::RefusalOf(const StartProcess& process, Clock::TimePoint now) const {
  const auto found = refusals_.find(process);
  return found == refusals_.end() || found->second.until <= now ? absl::OkStatus()
                                                                : found->second.why;
}

void KnownPods::OnMissing(const StartProcess& process) { pods_[process] = {.seen = true}; }

void KnownPods::OnSeen(const StartProcess& process, const std::string& uid) {
  pods_[process] = {.uid = uid, .seen = true};
}

void KnownPods::OnGone(const std::string& uid) {
  for (auto& [process, pod] : pods_) {
    pod.seen = pod.seen || pod.uid == uid;
  }
}

void KnownPods::ForgetBefore(std::span<const StartProcess> wanted) {
  for (const StartProcess& process : wanted) {
    EraseBefore(process, pods_);
    EraseBefore(process, refusals_);
  }
}

void KnownPods::Complete(const std::string& job, std::vector<ObservedPod>& observed) const {
  std::set<StartProcess> there;
  std::ranges::transform(observed, std::inserter(there, there.end()), &ObservedPod::process);
  for (const auto& [process, pod] : pods_) {
    if (!there.contains(process)) {
      observed.push_back(
          {.process = process,
           .name = PodName(job, process),
           .uid = pod.uid,
           .state = pod.seen ? ObservedPod::State::kGone : ObservedPod::State::kPending});
    }
  }
}

}  // namespace adamant::kube
