#include "services/common/job/data_files.h"

#include "services/common/base/status_macros.h"
#include "services/common/dataset/fingerprint.h"

namespace adamant::job {

absl::StatusOr<std::vector<FingerprintedFile>> FingerprintFiles(const IdxSource& source,
                                                                const std::string& set) {
  using dataset::FingerprintReading;
  ADAMANT_ASSIGN_OR_RETURN(const std::uint64_t images,
                           dataset::Fingerprint(source.paths.images, FingerprintReading::kSample));
  ADAMANT_ASSIGN_OR_RETURN(const std::uint64_t labels,
                           dataset::Fingerprint(source.paths.labels, FingerprintReading::kWhole));
  const std::string path = "spec.data." + set + ".";
  return std::vector<FingerprintedFile>{
      {.field = path + source.fields.images, .name = source.names.images, .fingerprint = images},
      {.field = path + source.fields.labels, .name = source.names.labels, .fingerprint = labels}};
}

std::string OtherFile(const std::string& name) {
  return name + " is not the file that the job began with: its content differs";
}

}  // namespace adamant::job
