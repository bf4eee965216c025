#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/job/data_problems.h"

// The files that a manifest names by their paths, of which it does not say what is in them: whether
// they are still those that a job began with. Digits and downloads need no look: a manifest has
// their seed, or their SHA-256.
namespace adamant::job {

/// A file of a job's data.
struct FingerprintedFile {
  std::string field;  ///< of the manifest: "spec.data.train.idx.images"
  std::string name;   ///< as IdxSource calls it
  std::uint64_t fingerprint = 0;
};

/// Both files of `source`, the labels read whole. `set`: "train" or "validation".
/// Errors: those of dataset::Fingerprint.
absl::StatusOr<std::vector<FingerprintedFile>> FingerprintFiles(const IdxSource& source,
                                                                const std::string& set);

/// "… is not the file that the job began with: …"
std::string OtherFile(const std::string& name);

}  // namespace adamant::job
