#include "services/common/storage/rocksdb/file_mark.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <charconv>
#include <memory>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/rocksdb/file_kinds.h"
#include "services/common/storage/rocksdb/rocksdb_status.h"

namespace adamant::storage {
namespace {

constexpr std::string_view kMark = "MARK";
constexpr std::string_view kNewMark = "MARK.new";
constexpr std::string_view kFormerMark = "CLOSED";  // of an orderly end, with logs alone
constexpr std::string_view kMarkFormatVersion = "1";

std::string Encode(const FileMark& mark) {
  std::string lines;
  for (const auto& [name, size] : mark) {
    lines += name + " " + std::to_string(size) + "\n";
  }
  return std::string(kMarkFormatVersion) + " " + HexChecksum(std::as_bytes(std::span(lines))) +
         "\n" + lines;
}

FileMark Decode(const std::string& text) {
  FileMark mark;
  std::istringstream in(text);
  std::string name;
  std::uint64_t size = 0;
  std::getline(in, name);  // the format and the checksum, which encoding the rest gives again
  while (in >> name >> size) {
    mark[name] = size;
  }
  return Encode(mark) == text ? mark : FileMark();
}

std::string PathOf(const std::filesystem::path& folder, std::string_view name) {
  return (folder / name).string();
}

std::uint64_t LogNumber(std::string_view log) {
  std::uint64_t number = 0;
  std::from_chars(log.data(), log.data() + log.size(), number);
  return number;
}

absl::Status SyncFolder(rocksdb::Env& env, const std::filesystem::path& folder) {
  std::unique_ptr<rocksdb::Directory> opened;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.NewDirectory(folder.string(), &opened), folder));
  return ReadStatus(opened->Fsync(), folder);
}

}  // namespace

// RocksDB removes a log that it needs no more once its manifest says so, and has grown by that. So
// the size is asked for first: where it was the last one, the logs were those.
absl::StatusOr<FileMark> MarkOf(rocksdb::DB& db,
                                rocksdb::Env& env,
                                const std::filesystem::path& folder) {
  FileMark mark;
  std::vector<std::string> live;  // "/MANIFEST-000005"
  std::uint64_t manifest_bytes = 0;
  ADAMANT_RETURN_IF_ERROR(
      ReadStatus(db.GetLiveFiles(live, &manifest_bytes, /*flush_memtable=*/false), folder));
  for (const std::string& name : live) {
    if (name.starts_with("/MANIFEST-")) {
      mark[name.substr(1)] = manifest_bytes;
    }
  }
  std::uint64_t needed_from = 0;
  std::vector<std::string> names;
  if (!db.GetIntProperty(rocksdb::DB::Properties::kMinLogNumberToKeep, &needed_from)) {
    return absl::UnavailableError(folder.string() + ": RocksDB does not say which logs it needs");
  }
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.GetChildren(folder.string(), &names), folder));
  for (const std::string& name : names) {
    if (name.ends_with(".log") && LogNumber(name) >= needed_from) {
      mark[name] = 0;
    }
  }
  return mark;
}

absl::Status CloseMark(rocksdb::Env& env, const std::filesystem::path& folder, FileMark& mark) {
  for (auto& [name, size] : mark) {
    if (name.ends_with(".log")) {
      const std::string path = PathOf(folder, name);
      ADAMANT_RETURN_IF_ERROR(ReadStatus(env.GetFileSize(path, &size), path));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FileMark> ReadMark(rocksdb::Env& env, const std::filesystem::path& folder) {
  for (const std::string_view name : {kMark, kFormerMark}) {
    const std::string path = PathOf(folder, name);
    if (env.FileExists(path).IsNotFound()) {
      continue;
    }
    std::string text;
    ADAMANT_RETURN_IF_ERROR(ReadStatus(rocksdb::ReadFileToString(&env, path, &text), path));
    return Decode(text);
  }
  return FileMark();
}

absl::Status WriteMark(rocksdb::Env& env,
                       const std::filesystem::path& folder,
                       const FileMark& mark) {
  const std::string path = PathOf(folder, kNewMark);
  ADAMANT_RETURN_IF_ERROR(CheckIsFile(path));
  ADAMANT_RETURN_IF_ERROR(
      ReadStatus(rocksdb::WriteStringToFile(&env, Encode(mark), path, /*should_sync=*/true), path));
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.RenameFile(path, PathOf(folder, kMark)), path));
  return SyncFolder(env, folder);
}

absl::Status RemoveFormerMark(rocksdb::Env& env, const std::filesystem::path& folder) {
  const std::string path = PathOf(folder, kFormerMark);
  if (env.FileExists(path).IsNotFound()) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(ReadStatus(env.DeleteFile(path), path));
  return SyncFolder(env, folder);
}

}  // namespace adamant::storage
