#include "operator/cli/kubectl/output/output_server.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::kubectl {
namespace {

absl::StatusOr<std::string> ReadPiece(const std::filesystem::path& path,
                                      std::uint64_t size,
                                      std::uint64_t piece) {
  const std::uint64_t begin = piece * kPieceBytes;
  std::string bytes(std::min(kPieceBytes, size - begin), '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) {
    return SystemError(errno, "cannot read", path);
  }
  return bytes;
}

absl::StatusOr<OutputFile> Examine(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  OutputFile file{
      .name = name, .size = std::filesystem::file_size(folder / name, error), .pieces = {}};
  if (error) {
    return SystemError(error.value(), "cannot read", folder / name);
  }
  for (std::uint64_t piece = 0; piece < PiecesOf(file.size); ++piece) {
    ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, ReadPiece(folder / name, file.size, piece));
    file.pieces.push_back(Checksum(std::as_bytes(std::span(bytes))));
  }
  return file;
}

http::Response NotFound() { return {.code = 404, .body = "there is nothing here\n"}; }

// Of "/KEY/model.onnx", what follows the key.
std::optional<std::string_view> NameIn(std::string_view path, const std::string& key) {
  const std::string prefix = "/" + key + "/";
  return key.empty() || !path.starts_with(prefix) ? std::nullopt
                                                  : std::optional(path.substr(prefix.size()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputServer>> OutputServer::Start(
    const OutputServerOptions& options) {
  std::vector<OutputFile> files;
  for (const std::string& name : options.names) {
    std::error_code error;
    if (std::filesystem::is_regular_file(options.folder / name, error)) {
      ADAMANT_ASSIGN_OR_RETURN(files.emplace_back(), Examine(options.folder, name));
    }
  }
  std::unique_ptr<OutputServer> output(new OutputServer(options, std::move(files)));
  ADAMANT_ASSIGN_OR_RETURN(
      output->server_,
      http::HttpServer::Start(options.listen, [self = output.get()](const http::Request& request) {
        return self->Respond(request);
      }));
  return output;
}

OutputServer::OutputServer(OutputServerOptions options, std::vector<OutputFile> files)
    : options_(std::move(options)), files_(std::move(files)), index_(EncodeIndex(files_)) {}

void OutputServer::ServeUntilIdle(std::chrono::milliseconds idle) const {
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point end = begin + idle; Clock::now() < end;
       end = std::max(begin, last_asked_.load()) + idle) {
    std::this_thread::sleep_until(end);
  }
}

http::Response OutputServer::Respond(const http::Request& request) {
  const std::optional<std::string_view> name = NameIn(request.path, options_.key);
  if (!name) {
    return NotFound();
  }
  last_asked_ = Clock::now();
  if (*name == "index") {
    return {.code = 200, .content_type = "application/json", .body = index_};
  }
  const auto file = std::ranges::find(files_, *name, &OutputFile::name);
  const auto piece = request.arguments.find("piece");
  return file == files_.end() || piece == request.arguments.end()
             ? NotFound()
             : RespondWithPiece(*file, piece->second);
}

http::Response OutputServer::RespondWithPiece(const OutputFile& file,
                                              std::string_view number) const {
  std::uint64_t piece = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), piece);
  if (error != std::errc() || end != number.data() + number.size() || piece >= file.pieces.size()) {
    return NotFound();
  }
  absl::StatusOr<std::string> bytes = ReadPiece(options_.folder / file.name, file.size, piece);
  if (!bytes.ok()) {
    return {.code = 500, .body = std::string(bytes.status().message()) + "\n"};
  }
  return {.code = 200, .content_type = "application/octet-stream", .body = *std::move(bytes)};
}

}  // namespace adamant::kubectl
