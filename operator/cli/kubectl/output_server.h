#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/kubectl/output_index.h"

namespace adamant::kubectl {

struct OutputServerOptions {
  std::string listen;              ///< host:port, IPv4; port 0: of the kernel's choice
  std::string key;                 ///< first part of every path; who does not know it gets nothing
  std::filesystem::path folder;    ///< what is served
  std::vector<std::string> names;  ///< of its files, those that there are
};

/// Serves files of a folder to the API server's proxy by HTTP/1.1, one request a connection:
///
///   GET /KEY/index                   EncodeIndex of the files
///   GET /KEY/NAME?piece=N            the N-th piece, from 0
///
/// Threads: one; no client can hold it up for longer than a few seconds.
class OutputServer {
 public:
  /// Reads the files once, for their checksums, then listens. Errors: those of reading; Unavailable
  /// when the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<OutputServer>> Start(const OutputServerOptions& options);
  ~OutputServer();
  OutputServer(const OutputServer&) = delete;
  OutputServer& operator=(const OutputServer&) = delete;

  [[nodiscard]] int port() const { return port_; }

  /// Returns when nobody who knows the key has asked for as long as `idle`.
  void ServeUntilIdle(std::chrono::milliseconds idle);

  /// The response to a request's first line. Public for tests of what it lets pass.
  [[nodiscard]] std::string Respond(std::string_view request_line) const;

 private:
  OutputServer(OutputServerOptions options, std::vector<OutputFile> files, int socket, int port);
  bool ServeOne(int connection) const;

  const OutputServerOptions options_;
  const std::vector<OutputFile> files_;
  const std::string index_;
  const int socket_;
  const int port_;
};

}  // namespace adamant::kubectl
