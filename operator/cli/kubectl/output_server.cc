#include "operator/cli/kubectl/output_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/files.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

constexpr std::size_t kLongestHead = 16'384;
constexpr int kPatienceSeconds = 20;  // for a client to send or to take

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

std::string Response(std::string_view status, std::string_view type, const std::string& body) {
  std::string response = "HTTP/1.1 ";
  response.append(status).append("\r\nContent-Type: ").append(type);
  response +=
      "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
  return response + body;
}

// Listens at host:port. Returns the socket.
absl::StatusOr<int> Listen(const std::string& address, int& port) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in name{};
  name.sin_family = AF_INET;
  std::uint16_t number = 0;
  const std::string host = address.substr(0, colon);
  const char* end = address.data() + address.size();
  const bool read = colon != std::string::npos && colon + 1 < address.size() &&
                    inet_pton(AF_INET, host.c_str(), &name.sin_addr) == 1 &&
                    std::from_chars(address.data() + colon + 1, end, number).ptr == end;
  if (!read) {
    return absl::InvalidArgumentError("'" + address + "' is no address like 0.0.0.0:8080");
  }
  name.sin_port = htons(number);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof(name);
  if (socket < 0 || bind(socket, reinterpret_cast<const sockaddr*>(&name), size) != 0 ||
      listen(socket, SOMAXCONN) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    const absl::Status status = SystemError(errno, "cannot listen at", address);
    close(socket);
    return status;
  }
  port = ntohs(name.sin_port);
  return socket;
}

bool SendAll(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// "GET /KEY/model.onnx?piece=3 HTTP/1.1": what follows the key.
std::optional<std::string_view> RestOfPath(std::string_view line, std::string_view key) {
  if (!line.starts_with("GET /")) {
    return std::nullopt;
  }
  line.remove_prefix(5);
  line = line.substr(0, line.find(' '));
  if (key.empty() || !line.starts_with(key) || line.substr(key.size(), 1) != "/") {
    return std::nullopt;
  }
  return line.substr(key.size() + 1);
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
  int port = 0;
  ADAMANT_ASSIGN_OR_RETURN(const int socket, Listen(options.listen, port));
  return std::unique_ptr<OutputServer>(new OutputServer(options, std::move(files), socket, port));
}

OutputServer::OutputServer(OutputServerOptions options,
                           std::vector<OutputFile> files,
                           int socket,
                           int port)
    : options_(std::move(options)),
      files_(std::move(files)),
      index_(EncodeIndex(files_)),
      socket_(socket),
      port_(port) {}

OutputServer::~OutputServer() { close(socket_); }

void OutputServer::ServeUntilIdle(std::chrono::milliseconds idle) {
  auto deadline = std::chrono::steady_clock::now() + idle;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
      return;
    }
    const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      continue;
    }
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (ServeOne(connection)) {
      deadline = std::chrono::steady_clock::now() + idle;
    }
    close(connection);
  }
}

// Whether it was asked by who knows the key.
bool OutputServer::ServeOne(int connection) const {
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos) {
    char bytes[2048];
    const ssize_t got = recv(connection, bytes, sizeof(bytes), 0);
    if (got <= 0 || head.size() > kLongestHead) {
      return false;
    }
    head.append(bytes, static_cast<std::size_t>(got));
  }
  const std::string_view line = std::string_view(head).substr(0, head.find("\r\n"));
  const bool known = RestOfPath(line, options_.key).has_value();
  return SendAll(connection, Respond(line)) && known;
}

std::string OutputServer::Respond(std::string_view request_line) const {
  const std::optional<std::string_view> path = RestOfPath(request_line, options_.key);
  const std::string not_found = Response("404 Not Found", "text/plain", "there is nothing here\n");
  if (!path) {
    return not_found;
  }
  if (*path == "index") {
    return Response("200 OK", "application/json", index_);
  }
  constexpr std::string_view kPiece = "?piece=";
  const std::string_view name = path->substr(0, path->find(kPiece));
  const auto file = std::ranges::find(files_, name, &OutputFile::name);
  if (file == files_.end() || name.size() == path->size()) {
    return not_found;
  }
  const std::string_view number = path->substr(name.size() + kPiece.size());
  std::uint64_t piece = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), piece);
  if (error != std::errc() || end != number.data() + number.size() ||
      piece >= file->pieces.size()) {
    return not_found;
  }
  const auto bytes = ReadPiece(options_.folder / file->name, file->size, piece);
  return bytes.ok() ? Response("200 OK", "application/octet-stream", *bytes)
                    : Response("500 Internal Server Error",
                               "text/plain",
                               std::string(bytes.status().message()) + "\n");
}

}  // namespace adamant::kubectl
