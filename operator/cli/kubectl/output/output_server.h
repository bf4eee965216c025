#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/cli/kubectl/output/output_index.h"
#include "services/common/http/http_server.h"

namespace adamant::kubectl {

struct OutputServerOptions {
  std::string listen;              ///< as HttpServer::Start takes it
  std::string key;                 ///< first part of every path; who does not know it gets nothing
  std::filesystem::path folder;    ///< what is served
  std::vector<std::string> names;  ///< of its files, those that there are
};

/// Serves files of a folder to the API server's proxy, within the limits of HttpServer:
///
///   GET /KEY/index                   EncodeIndex of the files
///   GET /KEY/NAME?piece=N            the N-th piece, from 0
///
/// Threads: those of HttpServer; functions are for one thread.
class OutputServer {
 public:
  /// Reads the files once, for their checksums, then listens. Errors: those of reading, and of
  /// HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<OutputServer>> Start(const OutputServerOptions& options);

  /// As HttpServer's.
  [[nodiscard]] const std::string& address() const { return server_->address(); }

  /// Returns when nobody who knows the key has asked for as long as `idle`, which should be longer
  /// than the client waits for an answer.
  void ServeUntilIdle(std::chrono::milliseconds idle) const;

  /// Answers a request. Public for tests of what it lets pass. Threads: any.
  http::Response Respond(const http::Request& request);

 private:
  using Clock = std::chrono::steady_clock;

  OutputServer(OutputServerOptions options, std::vector<OutputFile> files);
  [[nodiscard]] http::Response RespondWithPiece(const OutputFile& file,
                                                std::string_view number) const;

  const OutputServerOptions options_;
  const std::vector<OutputFile> files_;
  const std::string index_;
  std::atomic<Clock::time_point> last_asked_{Clock::time_point::min()};  // by who knows the key
  std::unique_ptr<http::HttpServer> server_;                             // last: it calls Respond
};

}  // namespace adamant::kubectl
