#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/kube/pods/reconcile.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// The pods that were made, seen or refused. A view that lacks one that was made is older than the
/// pod, or the pod is gone. Threads: one.
class KnownPods {
 public:
  /// Until it is asked whether a pod that was made and is not seen is there.
  static constexpr std::chrono::seconds kUnseen{5};

  struct Unseen {
    controller::StartProcess process;
    std::string uid;
  };

  /// The API has made it at `now`, or says that it is there.
  void OnMade(const controller::StartProcess& process,
              const std::string& uid,
              Clock::TimePoint now);

  /// Returns the pods that were made and that no view has shown for so long that the API should be
  /// asked: somebody may have deleted them before any view could. Then again after as long.
  std::vector<Unseen> TakeUnseen(Clock::TimePoint now);

  /// Returns when there will be some, if no view shows them before.
  [[nodiscard]] std::optional<Clock::TimePoint> NextUnseen() const;

  /// It could not be made, and is not asked for again before `until`.
  void OnRefused(const controller::StartProcess& process, absl::Status why, Clock::TimePoint until);

  /// Returns why it was refused, until it may be asked for again; then OK.
  [[nodiscard]] absl::Status RefusalOf(const controller::StartProcess& process,
                                       Clock::TimePoint now) const;

  /// The API says that there is no pod of this process. It counts as gone.
  void OnMissing(const controller::StartProcess& process);

  /// It was made, seen, or is missing.
  [[nodiscard]] bool Knows(const controller::StartProcess& process) const {
    return pods_.contains(process);
  }

  /// A view shows it.
  void OnSeen(const controller::StartProcess& process, const std::string& uid);

  /// The API says that it is not there any more, whatever a view shows.
  void OnGone(const std::string& uid);

  /// Pods of earlier generations than those that are wanted do not count any more. (A later one may
  /// be there, of another controller, and does not make this one's wishes void.)
  void ForgetBefore(std::span<const controller::StartProcess> wanted);

  /// Adds to what a view of the job's pods shows those that it lacks: as pending, or as gone.
  void Complete(const std::string& job, std::vector<ObservedPod>& observed) const;

 private:
  struct Pod {
    std::string uid{};
    bool seen = false;
    Clock::TimePoint ask_at{};  // whether it is there
  };

  struct Refusal {
    absl::Status why;
    Clock::TimePoint until;
  };

  std::map<controller::StartProcess, Pod> pods_;
  std::map<controller::StartProcess, Refusal> refusals_;
};

}  // namespace adamant::kube
