#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/pods/gang.h"
#include "operator/kube/pods/reconcile.h"

/// Pods of jobs, as they are read.
namespace adamant::kube {

/// Name of our container in the pods of jobs.
inline constexpr char kContainer[] = "adamant";

/// Work of a pod that is of no process: to write to the job's output volume.
struct OutputWork {
  std::optional<std::uint64_t> snapshot{};  ///< of the model; none: it tries whether it can write

  bool operator==(const OutputWork&) const = default;
};

/// The work of OutputTrialObject.
inline constexpr OutputWork kOutputTrial{};

/// "mnist-worker-1-3": slot and generation.
std::string PodName(const std::string& job, const controller::StartProcess& process);

/// Part of a pod that an informer keeps.
struct PodView {
  std::string ns;
  std::string job_name;
  std::string job_uid;
  std::string node;
  std::vector<std::string> addresses;  ///< its own and its node's; none: they are not told yet
  std::string waits;                   ///< why it has not started, as scheduler or node say
  GroupMark group;
  std::optional<OutputWork> output{};  ///< none: it is of a process
  ObservedPod pod;

  [[nodiscard]] bool IsProcess() const { return !output.has_value(); }
};

/// Null for a pod that is not of a job, or whose labels were tampered with.
std::shared_ptr<const PodView> ParsePod(const nlohmann::json& object);

}  // namespace adamant::kube
