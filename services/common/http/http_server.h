#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::http {

struct Request {
  std::string_view path;                                           ///< without the query
  std::map<std::string, std::string, std::less<>> arguments = {};  ///< of the query, unescaped
};

struct Response {
  int code = 404;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers GET requests over HTTP/1.1 until destroyed, also while others hold connections open and
/// send nothing. Limits: 256 connections, of which the oldest gives way to the next; a connection
/// that is silent for ten seconds is closed; 8 KiB for a request's head; other methods than GET and
/// HEAD get 405. Threads: one of its own, which also runs the handler.
class HttpServer {
 public:
  /// Called by the server's thread, one request at a time.
  using Handler = std::function<Response(const Request& request)>;

  /// `address` is HOST:PORT or [IPV6]:PORT; port 0: the kernel chooses.
  /// Errors: InvalidArgument when it is none; Unavailable when it cannot be listened at. Both name
  /// it. Throws std::system_error where there is no thread or memory, as std::thread does.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           Handler handler);
  ~HttpServer();

  /// As it was given, with the port in use.
  [[nodiscard]] const std::string& address() const;

 private:
  class Daemon;
  explicit HttpServer(std::unique_ptr<Daemon> daemon);

  const std::unique_ptr<Daemon> daemon_;
};

}  // namespace adamant::http
