#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/auth/credentials.h"
#include "operator/kube_client/base/transport.h"
#include "operator/kube_client/http/http_client.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

struct HttpTransportOptions {
  std::string user_agent = "adamant";
  std::size_t max_line = std::size_t{16} << 20;   ///< bytes of one line of a stream
  std::size_t max_body = std::size_t{256} << 20;  ///< bytes of a body that is not streamed
  /// Time after which, when no connection could be made, one request attempts it again; all others
  /// fail at once: with TLS an attempt costs the library tens of milliseconds of processor time.
  std::chrono::milliseconds absence = std::chrono::milliseconds(500);
};

/// The Transport to the server of a Config: HTTP by an HttpClient, with what `credentials` give.
/// After a 401 they are renewed and, if that gave others, the request is sent once more. When
/// certificates have changed, new requests go by new connections; streams go on by theirs. What
/// cannot be used (a certificate before its key has been written) is warned of, and the connections
/// of before stay in use. Threads: any; calls wait.
class HttpTransport final : public Transport {
 public:
  /// `credentials` must outlive this; no call may be under way when this is destroyed.
  HttpTransport(const Config& config,
                Credentials& credentials,
                HttpClientFactory make_client,
                HttpTransportOptions options = {});

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request,
                                    const Cancellation& cancellation) override;
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request,
                                      std::chrono::milliseconds idle,
                                      const std::function<bool(std::string_view line)>& on_line,
                                      const Cancellation& cancellation) override;

 private:
  /// Connections with one version of the TLS material.
  struct Connections {
    TlsMaterial material;
    std::shared_ptr<const TlsContext> tls;  // null: without TLS
    std::unique_ptr<HttpClient> client;
  };
  /// Takes the body of a response.
  using Read = std::function<absl::Status(HttpCall& call, HttpResponse& response)>;

  absl::StatusOr<HttpResponse> Perform(const HttpRequest& request,
                                       HttpCall::Deadline deadline,
                                       const Read& read,
                                       const Cancellation& cancellation);
  absl::StatusOr<HttpResponse> PerformAs(const Credential& credential,
                                         HttpRequest request,
                                         HttpCall::Deadline deadline,
                                         const Read& read,
                                         const Cancellation& cancellation);
  /// Unavailable if the server is absent and this is not the request that attempts it.
  absl::Status CheckPresence();
  absl::Status Absent(const absl::Status& reason);
  void Present();
  /// Adds why the server's certificate was refused.
  static absl::Status Explain(const absl::Status& status, const Connections& connections);
  absl::StatusOr<std::shared_ptr<const Connections>> ConnectionsFor(const TlsMaterial& material);
  absl::Status ReadBody(HttpCall& call, HttpCall::Deadline deadline, HttpResponse& response) const;
  absl::Status ReadLines(HttpCall& call,
                         std::chrono::milliseconds idle,
                         const std::function<bool(std::string_view line)>& on_line) const;

  const HttpTransportOptions options_;
  const Endpoint server_;
  const TlsOptions tls_options_;
  Credentials& credentials_;
  const HttpClientFactory make_client_;

  Mutex mutex_;
  std::shared_ptr<const Connections> connections_ ABSL_GUARDED_BY(mutex_);
  std::optional<TlsMaterial> unusable_ ABSL_GUARDED_BY(mutex_);  // has been warned of
  absl::Status absence_ ABSL_GUARDED_BY(mutex_);                 // why it is absent; OK: it is not
  HttpCall::Deadline next_attempt_ ABSL_GUARDED_BY(mutex_);
};

/// A Transport to the server of `config` by cpprestsdk. `credentials` must outlive it.
std::unique_ptr<Transport> MakeTransport(const Config& config, Credentials& credentials);

}  // namespace adamant::kube
