#include "services/data_server/rpc/locate_data.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/data_server/rpc/fetch_data.h"

namespace adamant::data_server {
namespace {

namespace fs = std::filesystem;

absl::Status Invalid(const std::string& set, const job::DataProblem& problem) {
  return absl::InvalidArgumentError(AboutField(set, problem));
}

absl::Status CheckThere(const std::string& path,
                        const std::string& name,
                        const std::string& set,
                        const std::string& field) {
  const std::string problem = job::MissingFile(path, name);
  return problem.empty() ? absl::OkStatus() : Invalid(set, {.field = field, .message = problem});
}

// Whether `path`, with its links resolved, is below `root`.
bool IsWithin(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  const fs::path real = error ? fs::path() : fs::canonical(path, error);
  return !error &&
         std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end()).first ==
             real_root.end();
}

// Looks a file up: one of the process's file system, or one on the claim mounted at `root`.
absl::Status LookUp(const v1::IdxFiles& idx,
                    const fs::path& root,
                    const std::string& set,
                    const std::string& field,
                    std::string& path,
                    std::string& name) {
  const std::string file = std::move(path);
  path = (root / file).string();
  name = idx.has_claim() ? file + " of the claim " + idx.claim() : path;
  ADAMANT_RETURN_IF_ERROR(CheckThere(path, name, set, field));
  if (idx.has_claim() && !IsWithin(root, path)) {
    return Invalid(set, {.field = field, .message = name + " leads out of the volume"});
  }
  return absl::OkStatus();
}

absl::StatusOr<job::IdxSource> LocateFiles(const v1::IdxFiles& idx,
                                           const std::string& set,
                                           const fs::path& data_root) {
  const fs::path root = idx.has_claim() ? data_root / set : data_root;
  job::IdxSource source{.paths = {.images = idx.images(), .labels = idx.labels()},
                        .names = {},
                        .fields = {.images = "idx.images", .labels = "idx.labels"}};
  ADAMANT_RETURN_IF_ERROR(
      LookUp(idx, root, set, source.fields.images, source.paths.images, source.names.images));
  ADAMANT_RETURN_IF_ERROR(
      LookUp(idx, root, set, source.fields.labels, source.paths.labels, source.names.labels));
  return source;
}

absl::StatusOr<job::IdxSource> FetchAll(const v1::IdxDownload& download,
                                        const std::string& set,
                                        const fs::path& folder,
                                        service::ControllerLink& controller) {
  job::IdxSource source{
      .paths = {},
      .names = {.images = download.images().url(), .labels = download.labels().url()},
      .fields = {.images = "download.images", .labels = "download.labels"}};
  const std::string field = "spec.data." + set + ".";
  ADAMANT_ASSIGN_OR_RETURN(
      source.paths.images,
      FetchData(download.images(), field + source.fields.images, folder, controller));
  ADAMANT_ASSIGN_OR_RETURN(
      source.paths.labels,
      FetchData(download.labels(), field + source.fields.labels, folder, controller));
  return source;
}

}  // namespace

absl::StatusOr<job::IdxSource> LocateData(const v1::DataSource& source,
                                          const std::string& set,
                                          const DataPlaces& places,
                                          service::ControllerLink& controller) {
  return source.has_download() ? FetchAll(source.download(), set, places.fetched, controller)
                               : LocateFiles(source.idx(), set, places.data_root);
}

std::string AboutField(const std::string& set, const job::DataProblem& problem) {
  return "spec.data." + set + "." + problem.field + ": " + problem.message;
}

absl::Status AboutFiles(const absl::Status& error,
                        const std::string& set,
                        const job::IdxSource& source) {
  const std::string text = AboutField(set, job::ProblemOf(error, source));
  return absl::IsUnavailable(error) || absl::IsDataLoss(error) ? absl::Status(error.code(), text)
                                                               : absl::InvalidArgumentError(text);
}

}  // namespace adamant::data_server
