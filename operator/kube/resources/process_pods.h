#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/messages.h"
#include "operator/kube/pods/gang.h"
#include "operator/kube/pods/known_pods.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/pods/reconcile.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/resources/server_claims.h"
#include "services/common/base/clock.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::kube {

/// The pods of a job's processes: makes and deletes them, and remembers what was made until a view
/// shows it.
/// Threads: one.
class ProcessPods {
 public:
  /// Returns which volume a process uses.
  using VolumeOf = std::function<std::uint64_t(controller::SlotId id)>;

  /// The arguments must outlive this.
  ProcessPods(JobWriter& writer, ServerClaims& claims, const PodSettings& settings)
      : writer_(writer), claims_(claims), settings_(settings) {}

  /// The job begins (again): a suspended one can be changed. Its templates are not checked.
  void Begin() { templates_checked_ = false; }

  /// The API says that this pod is there.
  void OnFound(const controller::StartProcess& process, const std::string& uid) {
    known_.OnMade(process, uid, writer_.clock().Now());
  }

  /// A view shows these. Returns them and those that it lacks, as pending or as gone; asks for
  /// those that no view has shown: one that was deleted as soon as it was made may be in none at
  /// all. So does the pod of a process whose end is `awaited` and of which there is none: it could
  /// not be made.
  std::vector<ObservedPod> Complete(std::vector<ObservedPod> observed,
                                    std::span<const controller::StartProcess> awaited);

  /// Checks the templates of spec.pods in a dry run, once: what is wrong there is found before
  /// anything is made, not when the first process of that role is started. Other refusals come
  /// again when the pods are made, and are told then.
  absl::Status CheckTemplates(const v1::TrainingJob& spec);

  /// Makes the pods of these processes. One for which there is no answer keeps the others waiting
  /// until the next time, and then is the last to be asked for; what was refused is not asked for
  /// again with every event.
  absl::Status Create(const v1::TrainingJob& spec,
                      std::vector<controller::StartProcess> processes,
                      const PodGroup& group,
                      const VolumeOf& volume_of);

  absl::Status Remove(const DeletePod& removal);

  /// Returns why a process's pod was refused last, also if it may be asked for again by now.
  [[nodiscard]] absl::Status RefusalOf(const controller::StartProcess& process) const {
    return known_.RefusalOf(process, Clock::TimePoint::min());
  }

  /// Pods of earlier generations than these do not count any more.
  void ForgetBefore(const std::vector<controller::StartProcess>& wanted) {
    known_.ForgetBefore(wanted);
  }

  /// Returns when to ask for what no view shows.
  [[nodiscard]] std::optional<Clock::TimePoint> NextUnseen() const { return known_.NextUnseen(); }

 private:
  absl::Status TryToCreate(const v1::TrainingJob& spec,
                           const controller::StartProcess& process,
                           const PodGroup& group,
                           std::uint64_t volume);
  absl::Status CreateOne(const v1::TrainingJob& spec,
                         const controller::StartProcess& process,
                         const PodGroup& group,
                         std::uint64_t volume);
  void AskForUnseen();
  void AskForUnknown(std::span<const controller::StartProcess> awaited);

  JobWriter& writer_;
  ServerClaims& claims_;
  const PodSettings& settings_;
  KnownPods known_;
  bool templates_checked_ = false;
};

}  // namespace adamant::kube
