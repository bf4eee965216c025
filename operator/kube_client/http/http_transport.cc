#include "operator/kube_client/http/http_transport.h"

#include <utility>

#include "operator/kube_client/http/cpprest_client.h"
#include "operator/kube_client/http/line_splitter.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kUnauthorized = 401;
constexpr std::chrono::milliseconds kMeanwhile{20};

std::string Seconds(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

absl::StatusOr<std::shared_ptr<const Credential>> CheckCredential(
    absl::StatusOr<std::shared_ptr<const Credential>> credential) {
  if (credential.ok() || absl::IsCancelled(credential.status())) {
    return credential;
  }
  return absl::UnauthenticatedError("no credentials: " +
                                    std::string(credential.status().message()));
}

/// A status of DeadlineExceeded says what was waited for.
absl::Status Waited(const absl::Status& status,
                    const std::string& what,
                    std::chrono::milliseconds time) {
  return absl::IsDeadlineExceeded(status)
             ? absl::DeadlineExceededError(what + " within " + Seconds(time))
             : status;
}

absl::StatusOr<HttpResponse> WaitForHead(HttpCall& call,
                                         HttpCall::Deadline deadline,
                                         const std::function<void()>& meanwhile) {
  while (meanwhile && SteadyClock::now() + kMeanwhile < deadline) {
    absl::StatusOr<HttpResponse> head = call.WaitForHead(SteadyClock::now() + kMeanwhile);
    if (!absl::IsDeadlineExceeded(head.status())) {
      return head;
    }
    meanwhile();
  }
  return call.WaitForHead(deadline);
}

}  // namespace

HttpTransport::HttpTransport(const Config& config,
                             Credentials& credentials,
                             HttpClientFactory make_client,
                             HttpTransportOptions options)
    : options_(std::move(options)),
      server_(config.server),
      tls_options_{.server_name =
                       config.tls_server_name.empty() ? config.server.host : config.tls_server_name,
                   .insecure_skip_verify = config.insecure_skip_tls_verify},
      credentials_(credentials),
      make_client_(std::move(make_client)) {
  if (config.insecure_skip_tls_verify) {
    LogWarning("insecure-skip-tls-verify: anybody can pass for the API server and see our secrets",
               {{"server", server_.Url()}, {"configured", config.source}});
  }
}

absl::StatusOr<HttpResponse> HttpTransport::Send(const HttpRequest& request,
                                                 const Cancellation& cancellation) {
  const auto deadline = SteadyClock::now() + request.timeout;
  const Read read = [&](HttpCall& call, HttpResponse& response) {
    return Waited(ReadBody(call, deadline, response), "no whole answer", request.timeout);
  };
  return Perform(request, deadline, read, cancellation);
}

absl::StatusOr<HttpResponse> HttpTransport::Stream(
    const HttpRequest& request,
    std::chrono::milliseconds idle,
    const std::function<bool(std::string_view line)>& on_line,
    const Cancellation& cancellation) {
  const auto deadline = SteadyClock::now() + request.timeout;
  const Read read = [&](HttpCall& call, HttpResponse& response) {
    return response.status == 200
               ? Waited(ReadLines(call, idle, on_line), "nothing has arrived", idle)
               : Waited(ReadBody(call, deadline, response), "no whole answer", request.timeout);
  };
  return Perform(request, deadline, read, cancellation);
}

absl::StatusOr<HttpResponse> HttpTransport::Perform(const HttpRequest& request,
                                                    HttpCall::Deadline deadline,
                                                    const Read& read,
                                                    const Cancellation& cancellation) {
  const auto perform = [&]() -> absl::StatusOr<HttpResponse> {
    ADAMANT_ASSIGN_OR_RETURN(const std::shared_ptr<const Credential> credential,
                             CheckCredential(credentials_.Get(cancellation)));
    absl::StatusOr<HttpResponse> response =
        PerformAs(*credential, request, deadline, read, cancellation);
    if (!response.ok() || response->status != kUnauthorized) {
      return response;
    }
    ADAMANT_ASSIGN_OR_RETURN(const std::shared_ptr<const Credential> renewed,
                             CheckCredential(credentials_.GetAfter(*credential, cancellation)));
    if (*renewed == *credential) {
      return response;
    }
    return PerformAs(*renewed, request, deadline, read, cancellation);
  };
  absl::StatusOr<HttpResponse> response = perform();
  if (!response.ok()) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    return absl::Status(response.status().code(),
                        request.method + " " + server_.Url() + path + ": " +
                            std::string(response.status().message()));
  }
  return response;
}

absl::StatusOr<HttpResponse> HttpTransport::PerformAs(const Credential& credential,
                                                      HttpRequest request,
                                                      HttpCall::Deadline deadline,
                                                      const Read& read,
                                                      const Cancellation& cancellation) {
  request.headers.try_emplace("user-agent", options_.user_agent);
  if (!credential.token.empty()) {
    request.headers["authorization"] = "Bearer " + credential.token;
  }
  ADAMANT_RETURN_IF_ERROR(CheckPresence());
  ADAMANT_ASSIGN_OR_RETURN(const std::shared_ptr<const Connections> connections,
                           ConnectionsFor(credential.tls));
  while (true) {
    ADAMANT_ASSIGN_OR_RETURN(const std::unique_ptr<HttpCall> call,
                             connections->client->Start(request));
    const std::shared_ptr<void> guard = cancellation.OnCancel([&call] { call->Cancel(); });
    absl::StatusOr<HttpResponse> response = WaitForHead(*call, deadline, request.meanwhile);
    if (absl::IsAborted(response.status())) {
      continue;  // each time, one of the connections that had been kept is gone
    }
    if (!response.ok()) {
      const absl::Status status =
          Explain(Waited(response.status(), "no answer", request.timeout), *connections);
      return absl::IsNotFound(status) ? Absent(status) : status;
    }
    Present();
    ADAMANT_RETURN_IF_ERROR(read(*call, *response));
    return response;
  }
}

absl::Status HttpTransport::CheckPresence() {
  const MutexLock lock(mutex_);
  const auto now = SteadyClock::now();
  if (absence_.ok()) {
    return absl::OkStatus();
  }
  if (now < next_attempt_) {
    return absence_;
  }
  next_attempt_ = now + options_.absence;  // the others wait for what this one finds
  return absl::OkStatus();
}

absl::Status HttpTransport::Absent(const absl::Status& reason) {
  const MutexLock lock(mutex_);
  absence_ = absl::UnavailableError(reason.message());
  next_attempt_ = SteadyClock::now() + options_.absence;
  return absence_;
}

void HttpTransport::Present() {
  const MutexLock lock(mutex_);
  absence_ = absl::OkStatus();
}

absl::Status HttpTransport::Explain(const absl::Status& status, const Connections& connections) {
  const std::string refusal = connections.tls == nullptr ? "" : connections.tls->LastRefusal();
  const bool verified = status.message().find("certificate verify failed") == std::string::npos;
  return verified || refusal.empty()
             ? status
             : absl::Status(status.code(), std::string(status.message()) + ": " + refusal);
}

absl::StatusOr<std::shared_ptr<const HttpTransport::Connections>> HttpTransport::ConnectionsFor(
    const TlsMaterial& material) {
  const MutexLock lock(mutex_);
  if (connections_ != nullptr && (connections_->material == material || unusable_ == material)) {
    return connections_;
  }
  auto connections = std::make_shared<Connections>();
  connections->material = material;
  if (server_.tls) {
    absl::StatusOr<std::shared_ptr<const TlsContext>> tls =
        TlsContext::Make(material, tls_options_);
    if (!tls.ok() && connections_ == nullptr) {
      return tls.status();
    }
    if (!tls.ok()) {
      LogWarning("changed certificates cannot be used; those of before stay in use",
                 {{"error", std::string(tls.status().message())}});
      unusable_ = material;
      return connections_;
    }
    connections->tls = *std::move(tls);
  }
  ADAMANT_ASSIGN_OR_RETURN(connections->client, make_client_(server_, connections->tls));
  connections_ = std::move(connections);
  unusable_.reset();
  return connections_;
}

absl::Status HttpTransport::ReadBody(HttpCall& call,
                                     HttpCall::Deadline deadline,
                                     HttpResponse& response) const {
  while (true) {
    ADAMANT_ASSIGN_OR_RETURN(const std::string_view piece, call.WaitForPiece(deadline));
    if (piece.empty()) {
      return absl::OkStatus();
    }
    if (piece.size() > options_.max_body - response.body.size()) {
      return absl::ResourceExhaustedError("the answer is larger than the limit of " +
                                          std::to_string(options_.max_body) +
                                          " bytes; ask for less at a time");
    }
    response.body += piece;
  }
}

absl::Status HttpTransport::ReadLines(
    HttpCall& call,
    std::chrono::milliseconds idle,
    const std::function<bool(std::string_view line)>& on_line) const {
  LineSplitter lines(options_.max_line);
  for (bool wanted = true; wanted;) {
    ADAMANT_ASSIGN_OR_RETURN(const std::string_view piece,
                             call.WaitForPiece(SteadyClock::now() + idle));
    if (piece.empty()) {
      break;
    }
    ADAMANT_ASSIGN_OR_RETURN(wanted, lines.Add(piece, on_line));
  }
  return absl::OkStatus();
}

std::unique_ptr<Transport> MakeTransport(const Config& config, Credentials& credentials) {
  return std::make_unique<HttpTransport>(config, credentials, &MakeCpprestClient);
}

}  // namespace adamant::kube
