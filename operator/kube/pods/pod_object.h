#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "operator/kube/api/job_identity.h"
#include "operator/kube/network/job_policies.h"
#include "operator/kube/pods/gang.h"
#include "operator/kube/pods/pod_image.h"
#include "operator/kube/pods/reconcile.h"
#include "operator/kube/volumes/pod_security.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

// Pods and claims of a job: how they are made, and what is read out of them.
namespace adamant::kube {

/// Labels of a process' pod.
inline constexpr char kSlotLabel[] = "adamant.dev/slot";
inline constexpr char kGenerationLabel[] = "adamant.dev/generation";

/// Settings that the pods of all jobs have in common.
struct PodSettings {
  PodImage image;
  std::string control_service;                  ///< host:port where the operators are, without TLS
  std::optional<PodSecurity> security{};        ///< none: their processes do without TLS
  std::optional<NetworkSettings> network = {};  ///< none: jobs get no network policies
};

/// "mnist-worker-1-3": slot and generation.
std::string PodName(const std::string& job, const controller::StartProcess& process);

/// The pod of a process: hardened defaults, with the role's template of the spec merged over them.
/// A parameter server's data is on the claim of `volume`, that of others goes with the pod.
/// `group`: the one of Kueue that it is to be in, where the spec names a queue.
nlohmann::json PodObject(const JobIdentity& job,
                         const v1::TrainingJob& spec,
                         const controller::StartProcess& process,
                         std::uint64_t volume,
                         const PodSettings& settings,
                         const PodGroup& group = {});

struct ModelToExport {
  std::uint64_t snapshot = 0;
  std::uint64_t epochs = 0;  ///< that have ended
};

/// The pod that writes a model and the epochs' results to the job's output volume:
/// "mnist-export-7". The ConfigMap of that name tells it what to fetch from where, the results are
/// in EpochObjects: it finds all of them as files in one folder.
nlohmann::json ExportPodObject(const JobIdentity& job,
                               const v1::TrainingJob& spec,
                               const ModelToExport& model,
                               const PodSettings& settings);
std::string ExportName(const std::string& job, std::uint64_t snapshot);

/// The pod that writes to a job's output volume before there is a model, to see whether it can:
/// "mnist-export-check". A node mounts it, and user and folder are those of exports.
nlohmann::json OutputTrialObject(const JobIdentity& job,
                                 const v1::TrainingJob& spec,
                                 const PodSettings& settings);

/// PodView::export_snapshot of that pod.
inline constexpr std::uint64_t kOutputTrial = ~std::uint64_t{0};

/// Part of a pod that an informer keeps.
struct PodView {
  std::string ns;
  std::string job_name;
  std::string job_uid;
  std::string node;
  std::vector<std::string> addresses;  ///< its own and its node's; none: they are not told yet
  std::string waits;                   ///< why it has not started, as scheduler or node say
  GroupMark group;
  std::uint64_t export_snapshot = 0;  ///< not 0: the pod writes this model, and is no process
  ObservedPod pod;
};

/// Null for a pod that is not of a job, or whose labels were tampered with.
std::shared_ptr<const PodView> ParsePod(const nlohmann::json& object);

}  // namespace adamant::kube
