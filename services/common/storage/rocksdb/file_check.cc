#include "services/common/storage/rocksdb/file_check.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/rocksdb/file_mark.h"
#include "services/common/storage/rocksdb/log_scan.h"
#include "services/common/storage/rocksdb/rocksdb_status.h"

namespace adamant::storage {
namespace {

constexpr std::string_view kCurrent = "CURRENT";  // holds the name of the manifest
constexpr std::string_view kManifest = "MANIFEST-";

// Of logs, and of manifests: their names are numbers.
std::pair<std::size_t, std::string_view> Order(std::string_view name) {
  return {name.size(), name};
}

absl::StatusOr<std::string> ReadWhole(rocksdb::Env& env, const std::string& path) {
  std::string bytes;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(rocksdb::ReadFileToString(&env, path, &bytes), path));
  return bytes;
}

absl::Status Damaged(const std::filesystem::path& path, const std::string& how) {
  return absl::DataLossError(path.string() + ": " + how + std::string(kDamageAdvice));
}

// The name of the manifest.
absl::StatusOr<std::string> ReadCurrent(rocksdb::Env& env, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kCurrent;
  ADAMANT_ASSIGN_OR_RETURN(std::string name, ReadWhole(env, path.string()));
  if (!name.starts_with(kManifest) || !name.ends_with('\n')) {
    return Damaged(path, "is damaged");
  }
  name.pop_back();
  if (!env.FileExists((folder / name).string()).ok()) {
    return Damaged(path, "is damaged, or " + name + ", which it names, is missing");
  }
  return name;
}

// Takes the manifest out of the mark. Returns whether there was a change of it since.
absl::StatusOr<bool> CheckManifest(rocksdb::Env& env,
                                   const std::filesystem::path& folder,
                                   FileMark& mark) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string name, ReadCurrent(env, folder));
  const std::filesystem::path path = folder / name;
  ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(env, path.string()));
  const LogScan scan = ScanLog(bytes);
  const auto marked = std::ranges::find_if(
      mark, [](const auto& file) { return file.first.starts_with(kManifest); });
  if (marked == mark.end()) {
    return scan.goes_on ? Damaged(path, "is damaged at byte " + std::to_string(scan.whole))
                        : absl::StatusOr<bool>(false);
  }
  const auto [marked_name, marked_bytes] = *marked;
  mark.erase(marked);
  if (Order(name) < Order(marked_name)) {
    return Damaged(folder / kCurrent, "names " + name + ", but " + marked_name + " came after it");
  }
  const bool same = name == marked_name;
  if (scan.goes_on || (same && scan.whole < marked_bytes)) {
    return Damaged(path, "is damaged at byte " + std::to_string(scan.whole));
  }
  return !same || scan.whole > marked_bytes;
}

// In their order. Takes those that it finds out of the mark.
absl::Status CheckLogs(rocksdb::Env& env,
                       const std::filesystem::path& folder,
                       const std::vector<std::string>& logs,
                       FileMark& mark) {
  std::optional<std::filesystem::path> cut;  // the file whose end is
  for (const std::string& name : logs) {
    const std::filesystem::path path = folder / name;
    ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(env, path.string()));
    const LogScan scan = ScanLog(bytes);
    if (cut.has_value() && scan.has_writes) {
      return Damaged(*cut, "is damaged at its end, and " + name + " goes on");
    }
    const auto marked = mark.extract(name);
    if (scan.goes_on || (!marked.empty() && scan.whole < marked.mapped())) {
      return Damaged(path, "is damaged at byte " + std::to_string(scan.whole));
    }
    if (scan.whole < bytes.size()) {
      cut = path;
    }
  }
  return absl::OkStatus();
}

}  // namespace

// The mark is read first, as one that is older than the rest demands no more than it should.
absl::Status CheckFiles(rocksdb::Env& env, const std::filesystem::path& folder) {
  ADAMANT_ASSIGN_OR_RETURN(FileMark mark, ReadMark(env, folder));
  std::vector<std::string> names;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.GetChildren(folder.string(), &names), folder));
  std::vector<std::string> logs;
  std::ranges::copy_if(names, std::back_inserter(logs), [](const std::string& name) {
    return name.ends_with(".log");
  });
  std::ranges::sort(logs, {}, Order);
  if (std::ranges::find(names, kCurrent) == names.end()) {
    const bool is_new = logs.empty() && mark.empty() && std::ranges::none_of(names, [](auto& name) {
                          return name.ends_with(".sst");
                        });
    return is_new ? absl::OkStatus() : Damaged(folder / kCurrent, "is missing");
  }
  ADAMANT_ASSIGN_OR_RETURN(const bool changed, CheckManifest(env, folder, mark));
  ADAMANT_RETURN_IF_ERROR(CheckLogs(env, folder, logs, mark));
  // A change of the manifest may have made logs superfluous, but never the newest.
  const std::string_view newest = logs.empty() ? std::string_view() : logs.back();
  for (const auto& [name, bytes] : mark) {
    if (!changed || Order(newest) < Order(name)) {
      return Damaged(folder / name, "is missing");
    }
  }
  return absl::OkStatus();
}

}  // namespace adamant::storage
