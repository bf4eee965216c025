#include "operator/kube/storage/epoch_files.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "operator/kube/storage/epoch_objects.h"
#include "services/common/base/system/files.h"

namespace adamant::kube {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;  // of an object, and so of an entry

}  // namespace

EpochFiles ReadEpochFiles(const std::string& folder) {
  EpochFiles files;
  std::set<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with(kEpochEntryPrefix)) {
      paths.insert(it->path());
    }
  }
  if (error) {
    files.problems.push_back(folder + ": " + error.message());
  }
  for (const std::filesystem::path& path : paths) {
    const auto bytes = ReadFile(path, kMaxBytes);
    auto result = bytes.ok() ? controller::DecodeResult(*bytes) : bytes.status();
    if (result.ok()) {
      files.results.push_back(*std::move(result));
    } else {
      files.problems.push_back(path.filename().string() + ": " +
                               std::string(result.status().message()));
    }
  }
  std::ranges::sort(files.results, {}, [](const controller::EpochResult& result) {
    return std::pair(result.attempt, result.epoch);
  });
  return files;
}

}  // namespace adamant::kube
