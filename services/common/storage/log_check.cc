#include "services/common/storage/log_check.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/log_scan.h"
#include "services/common/storage/rocksdb_status.h"

namespace adamant::storage {
namespace {

constexpr std::string_view kMark = "CLOSED";
constexpr std::string_view kNewMark = "CLOSED.new";
constexpr std::string_view kMarkFormat = "1";

using Sizes = std::map<std::string, std::uint64_t>;  // of log files, by name

std::string HexChecksum(std::string_view text) {
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016" PRIx64, Checksum(std::as_bytes(std::span(text))));
  return hex;
}

std::string EncodeMark(const Sizes& logs) {
  std::string lines;
  for (const auto& [name, size] : logs) {
    lines += name + " " + std::to_string(size) + "\n";
  }
  return std::string(kMarkFormat) + " " + HexChecksum(lines) + "\n" + lines;
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// A mark that is damaged, or of another version, is none.
Sizes DecodeMark(const std::string& mark) {
  Sizes logs;
  std::istringstream in(mark);
  std::string name;
  std::uint64_t size = 0;
  std::getline(in, name);  // the format and the checksum, which encoding the rest gives again
  while (in >> name >> size) {
    logs[name] = size;
  }
  return EncodeMark(logs) == mark ? logs : Sizes();
}

std::string PathOf(const std::filesystem::path& folder, std::string_view name) {
  return (folder / name).string();
}

// Logs in their order: their names are numbers.
absl::StatusOr<std::vector<std::string>> NamesIn(rocksdb::Env& env,
                                                 const std::filesystem::path& folder) {
  std::vector<std::string> names;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.GetChildren(folder.string(), &names), folder));
  std::ranges::sort(
      names, {}, [](const std::string& name) { return std::pair(name.size(), name); });
  return names;
}

absl::StatusOr<std::string> ReadWhole(rocksdb::Env& env, const std::string& path) {
  std::string bytes;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(rocksdb::ReadFileToString(&env, path, &bytes), path));
  return bytes;
}

absl::Status Damaged(const std::string& path, const std::string& how) {
  return absl::DataLossError(
      path + ": " + how +
      "; nothing of this store is used, as what was written last may be missing. Check the disk; "
      "restore the folder, or remove it to begin without what it held");
}

absl::Status SyncFolder(rocksdb::Env& env, const std::filesystem::path& folder) {
  std::unique_ptr<rocksdb::Directory> opened;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.NewDirectory(folder.string(), &opened), folder));
  return ReadStatus(opened->Fsync(), folder);
}

}  // namespace

absl::Status CheckLog(rocksdb::Env& env, const std::filesystem::path& folder) {
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(env, folder));
  Sizes closed;
  if (Has(names, kMark)) {
    ADAMANT_ASSIGN_OR_RETURN(const std::string mark, ReadWhole(env, PathOf(folder, kMark)));
    closed = DecodeMark(mark);
  }
  const bool has_current = Has(names, "CURRENT");
  std::optional<std::string> cut;  // the file whose end is
  for (const std::string& name : names) {
    if (!has_current && (name.ends_with(".log") || name.ends_with(".sst"))) {
      return Damaged(PathOf(folder, "CURRENT"), "is missing");
    }
    if (!name.ends_with(".log")) {
      continue;
    }
    const std::string path = PathOf(folder, name);
    ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(env, path));
    const LogScan scan = ScanLog(bytes);
    if (cut.has_value() && scan.has_writes) {
      return Damaged(*cut, "is damaged at its end, and " + name + " goes on");
    }
    const auto marked = closed.extract(name);
    if (scan.goes_on || (!marked.empty() && scan.whole < marked.mapped())) {
      return Damaged(path, "is damaged at byte " + std::to_string(scan.whole));
    }
    if (scan.whole < bytes.size()) {
      cut = path;
    }
  }
  return closed.empty() ? absl::OkStatus()
                        : Damaged(PathOf(folder, closed.begin()->first), "is missing");
}

absl::Status MarkClosed(rocksdb::Env& env, const std::filesystem::path& folder) {
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(env, folder));
  Sizes logs;
  for (const std::string& name : names) {
    if (name.ends_with(".log")) {
      const std::string path = PathOf(folder, name);
      ADAMANT_RETURN_IF_ERROR(ReadStatus(env.GetFileSize(path, &logs[name]), path));
    }
  }
  const std::string path = PathOf(folder, kNewMark);
  ADAMANT_RETURN_IF_ERROR(ReadStatus(
      rocksdb::WriteStringToFile(&env, EncodeMark(logs), path, /*should_sync=*/true), path));
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.RenameFile(path, PathOf(folder, kMark)), path));
  return SyncFolder(env, folder);
}

// Synced, as RocksDB removes logs that the mark names.
absl::Status RemoveClosedMark(rocksdb::Env& env, const std::filesystem::path& folder) {
  const std::string path = PathOf(folder, kMark);
  if (env.FileExists(path).IsNotFound()) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.DeleteFile(path), path));
  return SyncFolder(env, folder);
}

}  // namespace adamant::storage
