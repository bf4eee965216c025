#include "services/data_server/rpc/check_files.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/data_files.h"

namespace adamant::data_server {
namespace {

absl::Status Compare(const job::FingerprintedFile& file, const v1::Welcome& welcome) {
  const auto known = std::ranges::find(welcome.data_files(), file.field, &v1::DataFile::field);
  if (known == welcome.data_files().end() || known->fingerprint() == file.fingerprint) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(file.field + ": " + job::OtherFile(file.name) +
                                    "; only with that file can the job go on");
}

}  // namespace

absl::StatusOr<std::vector<protocol::DataFile>> CheckFiles(const v1::Welcome& welcome,
                                                           const DataPlaces& places,
                                                           service::ControllerLink& controller) {
  const v1::Data& data = welcome.job().spec().data();
  std::vector<protocol::DataFile> files;
  for (const auto& [set, source] :
       {std::pair("train", &data.train()), std::pair("validation", &data.validation())}) {
    if (!source->has_idx()) {
      continue;
    }
    ADAMANT_ASSIGN_OR_RETURN(const job::IdxSource located,
                             LocateData(*source, set, places, controller));
    const absl::StatusOr<std::vector<job::FingerprintedFile>> found =
        job::FingerprintFiles(located, set);
    if (!found.ok()) {
      return AboutFiles(found.status(), set, located);
    }
    for (const job::FingerprintedFile& file : *found) {
      ADAMANT_RETURN_IF_ERROR(Compare(file, welcome));
      files.push_back({.field = file.field, .fingerprint = file.fingerprint});
    }
  }
  return files;
}

}  // namespace adamant::data_server
