#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/messages.h"
#include "operator/kube/resources/job_writer.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::kube {

/// The claims of a job's parameter servers: those in use, and those that servers have left with
/// their nodes.
/// Threads: one.
class ServerClaims {
 public:
  /// By slot: which volume the server uses, counted from 1.
  using Volumes = std::vector<std::uint64_t>;

  /// `writer` must outlive this.
  explicit ServerClaims(JobWriter& writer) : writer_(writer) {}

  /// Makes the claim of a server's volume. One that was deleted while no pod waited for it is there
  /// again under its name, and empty, which is told.
  absl::Status Make(const v1::TrainingJob& spec, controller::SlotId server, std::uint64_t volume);

  /// Deletes the volumes before those in use, which nobody needs any more. After a restart they are
  /// asked for again, as nothing is remembered of it.
  absl::Status DeleteLeft(const Volumes& in_use);

  absl::Status DeleteAll(const Volumes& in_use);

 private:
  absl::Status Delete(std::uint32_t slot, std::uint64_t volume);

  JobWriter& writer_;
  std::map<std::uint32_t, std::uint64_t> deleted_;  // by slot: volumes up to it are
  std::map<std::string, std::string> uids_;         // by name: of those made or found
};

}  // namespace adamant::kube
