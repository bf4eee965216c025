#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Data that the job trains on: its files and how many examples they hold, as the first data
/// server found them. All others must find the same, also when the job goes on.
/// Threads: one thread at a time.
class DataIdentity {
 public:
  /// The arguments must outlive this.
  DataIdentity(const JobSettings& settings, JobState& state, Outbox& outbox)
      : settings_(settings), state_(state), outbox_(outbox) {}

  /// The files may be others than until now: what is read next is what the job goes on with, and
  /// until then what it began with stays stored.
  void AcceptOthers();

  /// Returns the files that a data server must find as they are.
  [[nodiscard]] std::vector<DataFile> Binding() const;

  /// Takes what a data server reads. One that was told the job's files has compared them itself;
  /// this is for those that began at once. Errors: FailedPrecondition when it reads another file.
  absl::Status OnFiles(SlotId from, const std::vector<DataFile>& files);

  /// Takes how many training examples a data server has counted. All count the same data, so one of
  /// them is enough to go on. Returns whether nobody knew until now. Errors: FailedPrecondition
  /// when it has another number.
  absl::StatusOr<bool> OnExamples(SlotId from, std::uint64_t examples);

 private:
  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  std::set<std::string> replaceable_;  // fields of files that the next to tell decides
};

}  // namespace adamant::controller
