#include "operator/kube/resources/pod_group_keeper.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "operator/kube/pods/coscheduling_group.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

// Between two looks: only pods without a node need the group.
constexpr std::chrono::seconds kLook{10};
constexpr std::chrono::seconds kUrgentLook{2};

int ProcessesOf(const v1::Distribution& distribution) {
  return distribution.workers() + distribution.data_servers() +
         distribution.parameter_servers().count();
}

}  // namespace

absl::Status PodGroupKeeper::Keep(const v1::JobSpec& spec, const PodViews& pods, bool none_runs) {
  const std::string& name = spec.pods().scheduling().pod_group();
  if (name.empty()) {
    Stop();
    return absl::OkStatus();
  }
  const Clock::TimePoint now = writer_.clock().Now();
  const std::string what = "keep PodGroup " + name;
  if (next_look_ && now < *next_look_) {
    writer_.failed().Keep(what);
    return absl::OkStatus();
  }
  const absl::Status kept = KeepPodGroup(
      writer_.client(), writer_.job(), name, ProcessesOf(spec.distribution()), none_runs);
  writer_.Note(what, kept);
  const bool urgent = !kept.ok() || pods.empty() ||
                      std::ranges::any_of(pods, [](const auto& pod) { return pod->node.empty(); });
  next_look_ = now + (urgent ? kUrgentLook : kLook);
  return kept;
}

std::optional<Clock::TimePoint> PodGroupKeeper::NextLook() const {
  const bool ahead = next_look_ && *next_look_ > writer_.clock().Now();
  return ahead ? next_look_ : std::nullopt;
}

}  // namespace adamant::kube
