#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/kube/certificates.h"

namespace adamant::fakes {

/// What the scripted server does with one request, step by step.
///
///   Reply::Json(404, R"({"kind":"Status","reason":"NotFound"})")
///   Reply::Json(429, "{}", {{"Retry-After", "2"}})
///   Reply::Stream().Line(added).WaitFor("more").Line(modified).Text("{\"half").Cut()
///   Reply::Stream().Line(added).Silence()           // half-open: nothing more ever comes
///   Reply::Raw("this is not HTTP\r\n\r\n")
class Reply {
 public:
  using Headers = std::map<std::string, std::string>;

  /// A whole response; the connection stays open for the next request.
  static Reply Json(int status, std::string body, Headers headers = {});
  /// The head of a chunked response; it ends regularly after its last step.
  static Reply Stream(int status = 200, Headers headers = {});
  /// These bytes as they are, instead of a response.
  static Reply Raw(std::string bytes);
  /// Nothing, not even a head, until the client closes.
  static Reply Nothing();

  /// Sends a chunk: `text` and an end of line.
  Reply Line(std::string text) &&;
  /// Sends a chunk: `text` as it is; may be part of a line, or several.
  Reply Text(std::string text) &&;
  /// Sends bytes past the chunked coding.
  Reply Bytes(std::string bytes) &&;
  Reply Wait(std::chrono::milliseconds time) &&;
  /// Goes on when the test has called Open(gate).
  Reply WaitFor(std::string gate) &&;
  /// Closes the connection there and then, without TLS's farewell. Last step.
  Reply Cut() &&;
  /// Resets the connection (RST). Last step.
  Reply Reset() &&;
  /// Sends nothing more but keeps the connection until the client closes. Last step.
  Reply Silence() &&;
  /// Closes the connection after this (regular) response, without having announced it.
  Reply ThenClose() &&;

  struct Step {
    enum class Kind { kBytes, kWait, kWaitFor, kCut, kReset, kSilence, kEndOfChunks, kClose };
    Kind kind = Kind::kBytes;
    std::string text = {};  // bytes, or the gate's name
    std::chrono::milliseconds time{0};
  };
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  Reply With(Step step) &&;

  std::vector<Step> steps_;
  bool chunked_ = false;
};

/// A request as the server got it.
struct ReceivedRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::string client;       ///< common name of the client's certificate; empty: it showed none
  int connection = 0;       ///< counts from 1
  std::string server_name;  ///< that the client asked for by SNI; empty: none
};

/// An API server that does what a test tells it to, over real TLS and HTTP/1.1 on a port of this
/// machine chosen by the kernel. It speaks with a certificate of `authority()` for 127.0.0.1, ::1
/// and localhost. Requests are answered by the first rule whose prefix ("GET /api/v1/pods", "GET ",
/// "") fits "METHOD target" and that is not used up; a request that no rule fits gets a 404.
///
///   ScriptedApiServer server;
///   server.Once("GET /api/v1/pods", Reply::Json(200, list));       // in the order of the calls
///   server.Once("GET /api/v1/pods?watch", Reply::Stream().Line(event).Silence());
///   server.Always("POST ", [](const ReceivedRequest& r) { return Reply::Json(201, r.body); });
///
/// Every connection has a thread, which the destructor ends. Threads: any.
class ScriptedApiServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";  ///< or "::1"
    int port = 0;                    ///< 0: the kernel chooses
    bool tls = true;
    bool ask_for_client_certificate = false;  ///< one of `authority()`; without one: refused
  };
  using Answer = std::function<Reply(const ReceivedRequest&)>;

  ScriptedApiServer();
  explicit ScriptedApiServer(const Options& options);
  ~ScriptedApiServer();
  ScriptedApiServer(const ScriptedApiServer&) = delete;
  ScriptedApiServer& operator=(const ScriptedApiServer&) = delete;

  [[nodiscard]] int port() const;
  [[nodiscard]] std::string url() const;  ///< "https://127.0.0.1:43210"
  [[nodiscard]] const CertificateAuthority& authority() const;

  /// Adds a rule that answers one request.
  void Once(std::string prefix, Reply reply);
  /// Adds a rule that answers every request that no earlier rule answers.
  void Always(std::string prefix, Reply reply);
  void Always(std::string prefix, Answer answer);
  void ForgetRules();

  /// Opens a gate, for good, to all replies that wait or will wait for it.
  void Open(const std::string& gate);

  /// All requests so far.
  [[nodiscard]] std::vector<ReceivedRequest> requests() const;
  /// Waits, for at most ten seconds, until there have been `count` requests; returns whether.
  bool WaitForRequests(std::size_t count) const;
  /// Waits likewise until exactly `count` connections are open.
  bool WaitForConnections(std::size_t count) const;

  /// Closes the connections that wait for a request, as servers do after a while; one that is being
  /// answered, after its answer.
  void CloseIdleConnections();
  /// Closes all connections; new ones are welcome.
  void CutConnections();
  /// What new connections are shown, in place of the first certificate.
  void UseCertificate(const KeyPair& certificate);
  /// Whether new connections are accepted (as before) or closed at once.
  void Refuse(bool refuse);

 private:
  class Impl;
  const std::string host_;
  const bool tls_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace adamant::fakes
