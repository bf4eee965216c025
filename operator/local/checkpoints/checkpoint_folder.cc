#include "operator/local/checkpoints/checkpoint_folder.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "operator/local/run_folder/checked_json.h"
#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::local {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kFormatVersion = 1;
constexpr char kManifest[] = "checkpoint.json";
constexpr std::uint64_t kMostManifestBytes = std::uint64_t{256} << 20;

std::string ChecksumOf(std::string_view content) {
  return HexChecksum(std::as_bytes(std::span(content)));
}

std::string Encode(const SavedCheckpoint& about) {
  Json json;
  json["format_version"] = kFormatVersion;
  json["job"] = about.job;
  json["job_uid"] = HexText(about.job_uid);
  json["checkpoint"] = about.snapshot;
  json["epoch"] = about.epoch;
  json["buckets"] = about.buckets;
  json["tensors"] = Json::array();
  for (const SavedTensor& tensor : about.tensors) {
    Json shape = Json::array();
    for (const std::int64_t extent : tensor.shape) {
      shape.push_back(static_cast<std::uint64_t>(extent));
    }
    json["tensors"].push_back({{"name", tensor.name}, {"shape", std::move(shape)}});
  }
  json["files"] = Json::array();
  for (const SavedFile& file : about.files) {
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"xxh3_64", file.checksum}});
  }
  return SealJson(std::move(json));
}

SavedCheckpoint FromJson(const Json& json) {
  SavedCheckpoint about;
  about.job = json.at("job");
  about.job_uid = ReadHex(json.at("job_uid"));
  about.snapshot = json.at("checkpoint");
  about.epoch = json.at("epoch");
  about.buckets = json.at("buckets");
  for (const Json& tensor : json.at("tensors")) {
    SavedTensor& added = about.tensors.emplace_back();
    added.name = tensor.at("name");
    for (const Json& extent : tensor.at("shape")) {
      added.shape.push_back(extent.get<std::int64_t>());
    }
  }
  for (const Json& file : json.at("files")) {
    about.files.push_back({.name = file.at("name").get<std::string>(),
                           .bytes = file.at("bytes").get<std::uint64_t>(),
                           .checksum = file.at("xxh3_64").get<std::string>()});
  }
  return about;
}

absl::Status Naming(const std::filesystem::path& path, const absl::Status& status) {
  return absl::Status(status.code(), path.string() + ": " + std::string(status.message()));
}

}  // namespace

std::string SavedBucketName(BucketId bucket) {
  char name[32];
  std::snprintf(name, sizeof(name), "bucket-%08x", bucket.value());
  return name;
}

SavedCheckpointWriter::SavedCheckpointWriter(std::filesystem::path folder,
                                             std::filesystem::path temporary)
    : folder_(std::move(folder)), temporary_(std::move(temporary)) {}

absl::StatusOr<SavedCheckpointWriter> SavedCheckpointWriter::Begin(
    const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_filename() ? path : path.parent_path();
  std::error_code error;
  const auto there = std::filesystem::symlink_status(folder, error);
  if (std::filesystem::exists(there) &&
      !(std::filesystem::is_directory(there) && std::filesystem::is_empty(folder, error))) {
    return absl::AlreadyExistsError(folder.string() +
                                    " is there already; name a folder that is empty or new");
  }
  const std::filesystem::path temporary = TemporaryOf(folder);
  ADAMANT_RETURN_IF_ERROR(MakeFolder(std::filesystem::absolute(temporary).parent_path()));
  // By one alone: another may be writing there, and what there is may be the user's.
  if (!std::filesystem::create_directory(temporary, error)) {
    return error ? MakeFolder(temporary)
                 : absl::AlreadyExistsError(temporary.string() +
                                            " is there, of one that is writing or was killed; "
                                            "remove it, or name another folder");
  }
  return SavedCheckpointWriter(folder, temporary);
}

SavedCheckpointWriter::~SavedCheckpointWriter() {
  if (!temporary_.empty()) {
    std::error_code error;
    std::filesystem::remove_all(temporary_, error);
  }
}

SavedCheckpointWriter::SavedCheckpointWriter(SavedCheckpointWriter&& other) noexcept
    : folder_(std::move(other.folder_)),
      temporary_(std::exchange(other.temporary_, {})),
      files_(std::move(other.files_)) {}

absl::Status SavedCheckpointWriter::Add(const std::string& name, std::string_view content) {
  ADAMANT_RETURN_IF_ERROR(WriteFileAtomically(temporary_ / name, content));
  files_.push_back({.name = name, .bytes = content.size(), .checksum = ChecksumOf(content)});
  return absl::OkStatus();
}

absl::Status SavedCheckpointWriter::Finish(SavedCheckpoint about) {
  about.files = files_;
  ADAMANT_RETURN_IF_ERROR(WriteFileAtomically(temporary_ / kManifest, Encode(about)));
  std::error_code error;
  std::filesystem::rename(temporary_, folder_, error);
  if (error) {
    return SystemError(error.value(), "cannot rename to", folder_);
  }
  temporary_.clear();
  return SyncFolder(folder_.has_parent_path() ? folder_.parent_path() : ".");
}

absl::StatusOr<SavedCheckpoint> ReadSavedCheckpoint(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifest;
  absl::StatusOr<std::string> text = ReadFile(path, kMostManifestBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(folder.string() + " is no checkpoint: it has no " + kManifest);
  }
  ADAMANT_RETURN_IF_ERROR(text.status());
  const absl::StatusOr<Json> json = OpenJson(*text, kFormatVersion);
  if (!json.ok()) {
    return Naming(path, json.status());
  }
  try {
    return FromJson(*json);
  } catch (const nlohmann::json::exception& error) {
    return Naming(path, DamagedManifest(error.what()));
  }
}

absl::StatusOr<std::string> ReadSavedFile(const std::filesystem::path& folder,
                                          const SavedCheckpoint& about,
                                          const std::string& name) {
  const std::filesystem::path path = folder / name;
  const auto file = std::ranges::find(about.files, name, &SavedFile::name);
  if (file == about.files.end()) {
    return absl::DataLossError((folder / kManifest).string() + " names no file " + name);
  }
  absl::StatusOr<std::string> content = ReadFile(path, file->bytes);
  if (absl::IsNotFound(content.status())) {
    return absl::DataLossError(path.string() + " is missing");
  }
  if (absl::IsOutOfRange(content.status()) || (content.ok() && content->size() != file->bytes)) {
    return absl::DataLossError(path.string() + " has another size than " + kManifest + " says");
  }
  ADAMANT_RETURN_IF_ERROR(content.status());
  if (ChecksumOf(*content) != file->checksum) {
    return absl::DataLossError(path.string() + " is damaged: it does not have the checksum that " +
                               kManifest + " says");
  }
  return content;
}

absl::StatusOr<Records> ReadSavedRecords(const std::filesystem::path& folder,
                                         const SavedCheckpoint& about,
                                         const std::string& name) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string content, ReadSavedFile(folder, about, name));
  absl::StatusOr<Records> records = DecodeRecords(content);
  if (!records.ok()) {
    return Naming(folder / name, records.status());
  }
  return records;
}

}  // namespace adamant::local
