#include "operator/local/job_data.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/files.h"
#include "services/common/base/status_macros.h"
#include "services/common/dataset/idx.h"
#include "services/common/job/optimiser_of.h"

namespace adamant::local {

absl::StatusOr<std::uint64_t> ExamplesOf(const v1::DataSource& source) {
  if (source.has_digits()) {
    return static_cast<std::uint64_t>(source.digits().examples());
  }
  if (!source.has_idx() || source.idx().has_claim()) {
    return absl::UnimplementedError(
        "on one machine data is files of that machine or the digits generator; claims and "
        "downloads "
        "are for clusters");
  }
  ADAMANT_ASSIGN_OR_RETURN(
      const dataset::IdxInfo info,
      dataset::InspectIdx({.images = source.idx().images(), .labels = source.idx().labels()}));
  return info.examples;
}

absl::Status CountProgress(v1::TrainingJob& job) {
  ADAMANT_ASSIGN_OR_RETURN(const std::uint64_t examples, ExamplesOf(job.spec().data().train()));
  job::CountProgressInExamples(examples, job);
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> RandomUid() {
  std::uint64_t uid = 0;
  while (uid == 0) {
    if (getrandom(&uid, sizeof(uid), 0) != sizeof(uid)) {
      return SystemError(errno, "cannot read", "random numbers");
    }
  }
  return uid;
}

}  // namespace adamant::local
