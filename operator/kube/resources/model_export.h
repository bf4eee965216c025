#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/pods/reconcile.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/resources/output_attempts.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::kube {

/// Brings a job's model to its output volume: a pod fetches it from the servers, and writes it.
/// Threads: one.
class ModelExport {
 public:
  /// Data that is written, and where it is.
  struct Source {
    const v1::TrainingJob& spec;
    const controller::JobState& state;
    std::vector<std::string> servers;  ///< by slot: the address; "": it does not run
  };

  struct Result {
    absl::Status status;
    std::optional<controller::Exported> exported{};  ///< for the controller: how an attempt ended
  };

  /// The arguments must outlive this.
  ModelExport(JobWriter& writer, const PodSettings& pods)
      : writer_(writer), pods_(pods), attempts_(writer.clock()) {}

  /// The model of this snapshot is to be written.
  void Want(std::uint64_t snapshot) { snapshot_ = snapshot; }

  /// Returns the snapshot that is to be written; 0: none.
  [[nodiscard]] std::uint64_t wanted() const { return snapshot_; }

  /// Nothing is to be written, and nothing has failed.
  void Reset();

  /// Does what is to be done. `pod`: the one that writes the wanted snapshot; null: there is none.
  Result Work(const Source& source, const ObservedPod* pod, const NodeTimeouts& timeouts);

  /// Returns when the next attempt is due; nullopt: now, or never.
  [[nodiscard]] std::optional<Clock::TimePoint> Next() const;

 private:
  absl::Status Start(const Source& source);
  absl::Status WriteSource(const Source& source);
  Result Finish(const v1::TrainingJob& spec, const ObservedPod& pod);
  void Note(const v1::TrainingJob& spec, const absl::Status& status);
  [[nodiscard]] nlohmann::json DataOf(const Source& source) const;

  JobWriter& writer_;
  const PodSettings& pods_;
  std::uint64_t snapshot_ = 0;
  OutputAttempts attempts_;
};

}  // namespace adamant::kube
