#include "operator/cli/kubectl/output/fetch_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>

#include "operator/cli/kubectl/output/output_pod.h"
#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::kubectl {
namespace {

constexpr int kTries = 4;  // of a piece
constexpr std::chrono::seconds kPause{1};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::uint64_t SizeOf(const OutputFile& file, std::uint64_t piece) {
  return std::min(kPieceBytes, file.size - piece * kPieceBytes);
}

absl::StatusOr<std::string> FetchPiece(const Session& session,
                                       const std::string& path,
                                       const OutputFile& file,
                                       std::uint64_t piece) {
  const std::string target = path + "/" + file.name + "?piece=" + std::to_string(piece);
  for (int tries = 1;; ++tries) {
    absl::StatusOr<std::string> bytes = session.client.GetRaw(target);
    if (bytes.ok() && (bytes->size() != SizeOf(file, piece) ||
                       Checksum(std::as_bytes(std::span(*bytes))) != file.pieces[piece])) {
      bytes = absl::DataLossError(file.name + ": what arrives is not what was sent");
    }
    const bool may_pass = absl::IsDataLoss(bytes.status()) || absl::IsUnavailable(bytes.status()) ||
                          absl::IsDeadlineExceeded(bytes.status());
    if (!may_pass || tries == kTries) {
      return bytes;
    }
    session.sleeper.Sleep(kPause, session.cancellation);
  }
}

absl::Status Append(const std::string& bytes, const std::filesystem::path& path, const File& file) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    return SystemError(errno, "cannot write", path);
  }
  return absl::OkStatus();
}

// The regular file to be written, through links.
absl::StatusOr<std::filesystem::path> PlaceOf(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    return absl::FailedPreconditionError(path.string() +
                                         " is no regular file; name another folder with --out");
  }
  return EndOfLinks(path);
}

}  // namespace

std::string OutputPath(const kube::ObjectKey& pod, const std::string& key) {
  return "/api/v1/namespaces/" + pod.ns + "/pods/" + pod.name + ":" + std::to_string(kOutputPort) +
         "/proxy/" + key;
}

absl::StatusOr<std::vector<OutputFile>> FetchIndex(const Session& session,
                                                   const std::string& path) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string index, session.client.GetRaw(path + "/index"));
  return DecodeIndex(index);
}

absl::Status FetchFile(const Session& session,
                       const std::string& path,
                       const OutputFile& file,
                       const std::filesystem::path& folder,
                       const OnBytes& on_bytes) {
  ADAMANT_ASSIGN_OR_RETURN(const std::filesystem::path place, PlaceOf(folder / file.name));
  const std::filesystem::path partial =
      place.parent_path() / ("." + place.filename().string() + ".partial");
  const File stream(std::fopen(partial.c_str(), "wb"));
  if (stream == nullptr) {
    return SystemError(errno, "cannot create", partial);
  }
  absl::Status status;
  std::uint64_t done = 0;
  for (std::uint64_t piece = 0; status.ok() && piece < file.pieces.size(); ++piece) {
    const absl::StatusOr<std::string> bytes = FetchPiece(session, path, file, piece);
    status = bytes.ok() ? Append(*bytes, partial, stream) : bytes.status();
    done += bytes.ok() ? bytes->size() : 0;
    on_bytes(done);
  }
  if (status.ok() && (std::fflush(stream.get()) != 0 || fsync(fileno(stream.get())) != 0)) {
    status = SystemError(errno, "cannot write", partial);
  }
  std::error_code error;
  if (status.ok()) {
    std::filesystem::rename(partial, place, error);
    return error ? SystemError(error.value(), "cannot write", place) : status;
  }
  std::filesystem::remove(partial, error);
  return status;
}

}  // namespace adamant::kubectl
