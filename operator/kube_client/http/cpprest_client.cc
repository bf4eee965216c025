#include "operator/kube_client/http/cpprest_client.h"

// Keeps the library's macro U away.
#define _TURN_OFF_PLATFORM_STRING  // NOLINT(readability-identifier-naming,bugprone-reserved-identifier)
#include <cpprest/http_client.h>
#include <cpprest/producerconsumerstream.h>
#include <openssl/ssl.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "operator/kube_client/http/connection_watch.h"
#include "operator/kube_client/http/explain_failure.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Socket = boost::asio::ip::tcp::socket;
using TlsStream = boost::asio::ssl::stream<Socket&>;

constexpr std::size_t kThreads = 4;

// The library's own timer, for each read and write. Ours end a request long before.
constexpr std::chrono::hours kLibraryTimeout{1};

/// Thrown to the library to keep it from using a connection; it comes back to us.
class StaleConnection : public std::exception {};

// Where we keep things with OpenSSL's objects; their "app data" is asio's.
int SocketIndex() {
  static const int kIndex = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return kIndex;
}
int TlsIndex() {
  static const int kIndex = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return kIndex;
}

/// OpenSSL's reports of what happens on a connection. The begin of its handshake is the last moment
/// to name the server, its end the first at which we can have the socket connected.
void OnTlsEvent(const SSL* connection, int event, int /*result*/) {
  if (event == SSL_CB_HANDSHAKE_START) {
    const void* tls = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), TlsIndex());
    static_cast<const TlsContext*>(tls)->NameServer(const_cast<SSL*>(connection));
  } else if (event == SSL_CB_HANDSHAKE_DONE) {
    // Null for a further address of a name, after the first has failed: the library shows us only
    // the connection that it begins with.
    if (auto* socket = static_cast<Socket*>(SSL_get_ex_data(connection, SocketIndex()))) {
      WatchConnection(socket->native_handle());
    }
  }
}

/// Called by the library with the connection that it is going to send a request on.
void Prepare(web::http::client::native_handle connection, bool tls) {
  auto* stream = tls ? static_cast<TlsStream*>(connection) : nullptr;
  Socket& socket = tls ? stream->next_layer() : *static_cast<Socket*>(connection);
  if (socket.is_open()) {
    if (IsStale(socket.native_handle())) {
      throw StaleConnection();
    }
  } else if (tls) {
    SSL_set_ex_data(stream->native_handle(), SocketIndex(), &socket);
  }
}

/// Whether the library failed before it had a connection.
bool IsOfConnecting(std::string_view what, int code) {
  return code == static_cast<int>(std::errc::host_unreachable) ||
         what.find("Error in SSL handshake") != std::string_view::npos;
}

absl::Status StatusOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const web::http::http_exception& error) {
    const int code = error.error_code().value();
    const std::string reason = ExplainFailure(error.what(), code);
    return IsOfConnecting(error.what(), code) ? absl::NotFoundError(reason)
                                              : absl::UnavailableError(reason);
  } catch (const StaleConnection&) {
    return absl::AbortedError("stale connection");
  } catch (const web::uri_exception& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const std::exception& error) {
    return absl::UnavailableError(error.what());
  }
}

HttpResponse HeadOf(const web::http::http_response& response) {
  HttpResponse head{.status = response.status_code()};
  for (const auto& [name, value] : response.headers()) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    head.headers[std::move(lower)] = value;
  }
  return head;
}

/// One request and its response: the library's threads put in what arrives, the caller's thread
/// takes it out. The caller may give up at any time; then what arrives later is refused, which
/// makes the library close the connection. Held by both sides.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Deadline = HttpCall::Deadline;

  void Start(web::http::client::http_client& client, web::http::http_request request);

  // As HttpCall.
  absl::StatusOr<HttpResponse> WaitForHead(Deadline deadline);
  absl::StatusOr<std::string_view> WaitForPiece(Deadline deadline);
  void Cancel() {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    changed_.NotifyAll();
  }
  /// The caller is done with it, whatever state it is in.
  void GiveUp();

 private:
  class Body;

  pplx::task<std::size_t> Put(std::string_view piece);
  void ReturnPiece();
  void OnHead(const pplx::task<web::http::http_response>& task);
  void OnEnd(const std::exception_ptr& failure);
  [[nodiscard]] bool HasHead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ || head_.has_value();
  }
  [[nodiscard]] bool HasPiece() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ || !piece_.empty();
  }
  absl::Status WaitUntil(Deadline deadline, bool (Exchange::*ready)() const)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  pplx::cancellation_token_source abort_;

  Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::optional<HttpResponse> head_ ABSL_GUARDED_BY(mutex_);
  std::string_view piece_ ABSL_GUARDED_BY(mutex_);  // the library's memory, until `used_` is set
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  pplx::task_completion_event<std::size_t> used_ ABSL_GUARDED_BY(mutex_);
};

/// What the library writes the body to. Of its buffer classes this one needs the least to be
/// changed: a write ends when the caller has used what is written, so nothing is ever stored.
class Exchange::Body final
    : public concurrency::streams::details::basic_producer_consumer_buffer<std::uint8_t> {
 public:
  explicit Body(std::shared_ptr<Exchange> exchange)
      : basic_producer_consumer_buffer(1), exchange_(std::move(exchange)) {}

 protected:
  pplx::task<std::size_t> _putn(const std::uint8_t* bytes, std::size_t count) override {
    return exchange_->Put({reinterpret_cast<const char*>(bytes), count});
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

void Exchange::Start(web::http::client::http_client& client, web::http::http_request request) {
  const std::shared_ptr<Exchange> self = shared_from_this();
  request.set_response_stream(
      concurrency::streams::streambuf<std::uint8_t>(std::make_shared<Body>(self)).create_ostream());
  client.request(request, abort_.get_token())
      .then([self](const pplx::task<web::http::http_response>& task) { self->OnHead(task); });
}

void Exchange::OnHead(const pplx::task<web::http::http_response>& task) {
  try {
    const web::http::http_response response = task.get();
    {
      const MutexLock lock(mutex_);
      head_ = HeadOf(response);
      changed_.NotifyAll();
    }
    response.content_ready().then(
        [self = shared_from_this()](const pplx::task<web::http::http_response>& end) {
          try {
            end.get();
            self->OnEnd(nullptr);
          } catch (...) {
            self->OnEnd(std::current_exception());
          }
        });
  } catch (...) {
    OnEnd(std::current_exception());
  }
}

void Exchange::OnEnd(const std::exception_ptr& failure) {
  const MutexLock lock(mutex_);
  ended_ = true;
  if (failure != nullptr) {
    failure_ = StatusOf(failure);
  }
  changed_.NotifyAll();
}

pplx::task<std::size_t> Exchange::Put(std::string_view piece) {
  const MutexLock lock(mutex_);
  if (given_up_) {
    return pplx::task_from_exception<std::size_t>(std::runtime_error("given up"));
  }
  piece_ = piece;
  taken_ = false;
  used_ = {};
  changed_.NotifyAll();
  return pplx::create_task(used_);
}

absl::Status Exchange::WaitUntil(Deadline deadline, bool (Exchange::*ready)() const) {
  while (!cancelled_ && !(this->*ready)()) {
    const auto left = deadline - SteadyClock::now();
    if (left.count() <= 0) {
      return absl::DeadlineExceededError("");
    }
    changed_.WaitFor(mutex_, left);
  }
  return cancelled_ ? absl::CancelledError("cancelled") : absl::OkStatus();
}

absl::StatusOr<HttpResponse> Exchange::WaitForHead(Deadline deadline) {
  const MutexLock lock(mutex_);
  ADAMANT_RETURN_IF_ERROR(WaitUntil(deadline, &Exchange::HasHead));
  if (!head_) {
    return failure_;
  }
  return *head_;
}

absl::StatusOr<std::string_view> Exchange::WaitForPiece(Deadline deadline) {
  ReturnPiece();
  const MutexLock lock(mutex_);
  ADAMANT_RETURN_IF_ERROR(WaitUntil(deadline, &Exchange::HasPiece));
  if (piece_.empty()) {
    ADAMANT_RETURN_IF_ERROR(failure_);
  }
  taken_ = !piece_.empty();
  return piece_;
}

void Exchange::ReturnPiece() {
  std::size_t size = 0;
  pplx::task_completion_event<std::size_t> used;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(taken_, false)) {
      return;
    }
    size = std::exchange(piece_, {}).size();
    used = used_;
  }
  used.set(size);  // the library reads on
}

void Exchange::GiveUp() {
  bool pending = false;
  pplx::task_completion_event<std::size_t> used;
  {
    const MutexLock lock(mutex_);
    given_up_ = true;
    if (ended_) {
      return;  // the connection may be in use for another request
    }
    pending = !std::exchange(piece_, {}).empty();
    used = used_;
  }
  abort_.cancel();  // closes the connection
  if (pending) {
    used.set_exception(std::runtime_error("given up"));
  }
}

class CpprestCall final : public HttpCall {
 public:
  CpprestCall(web::http::client::http_client& client, const web::http::http_request& request) {
    exchange_->Start(client, request);
  }
  ~CpprestCall() override { exchange_->GiveUp(); }
  CpprestCall(const CpprestCall&) = delete;
  CpprestCall& operator=(const CpprestCall&) = delete;

  absl::StatusOr<HttpResponse> WaitForHead(Deadline deadline) override {
    return exchange_->WaitForHead(deadline);
  }
  absl::StatusOr<std::string_view> WaitForPiece(Deadline deadline) override {
    return exchange_->WaitForPiece(deadline);
  }
  void Cancel() override { exchange_->Cancel(); }

 private:
  const std::shared_ptr<Exchange> exchange_ = std::make_shared<Exchange>();
};

web::uri BaseUri(const Endpoint& server) {
  // The library takes what is between the slashes and the last colon for the host, and passes it on
  // to getaddrinfo: no brackets around an address.
  return {(server.tls ? "https://" : "http://") + server.host + ":" + std::to_string(server.port) +
          server.path};
}

web::http::client::http_client_config Configuration(const std::shared_ptr<const TlsContext>& tls) {
  web::http::client::http_client_config configuration;
  configuration.set_timeout(kLibraryTimeout);
  configuration.set_max_redirects(0);
  configuration.set_proxy(web::web_proxy(web::web_proxy::disabled));
  configuration.set_tlsext_sni_enabled(false);  // OnTlsEvent does it
  configuration.set_nativehandle_options(
      [with_tls = tls != nullptr](web::http::client::native_handle handle) {
        Prepare(handle, with_tls);
      });
  configuration.set_ssl_context_callback([tls](boost::asio::ssl::context& context) {
    if (const absl::Status status = tls->ApplyTo(context.native_handle()); !status.ok()) {
      throw std::runtime_error(std::string(status.message()));
    }
    // It outlives the connection's handshake, as the client's configuration does.
    SSL_CTX_set_ex_data(context.native_handle(), TlsIndex(), const_cast<TlsContext*>(tls.get()));
    SSL_CTX_set_info_callback(context.native_handle(), &OnTlsEvent);
  });
  return configuration;
}

class CpprestClient final : public HttpClient {
 public:
  CpprestClient(const Endpoint& server, const std::shared_ptr<const TlsContext>& tls)
      : host_(HostOf(server)), client_(BaseUri(server), Configuration(tls)) {}

  absl::StatusOr<std::unique_ptr<HttpCall>> Start(const HttpRequest& request) override {
    try {
      return std::make_unique<CpprestCall>(client_, Translate(request));
    } catch (...) {
      return StatusOf(std::current_exception());
    }
  }

 private:
  static std::string HostOf(const Endpoint& server) {
    const std::string url = server.Url();
    const std::size_t begin = url.find("://") + 3;
    return url.substr(begin, url.find('/', begin) - begin);
  }

  web::http::http_request Translate(const HttpRequest& request) const {
    web::http::http_request translated(request.method);
    translated.set_request_uri(web::uri(request.target));
    if (!request.body.empty()) {
      // Of a kind that cannot be rewound, so that the library does not send it twice.
      concurrency::streams::producer_consumer_buffer<std::uint8_t> body(request.body.size());
      body.putn_nocopy(reinterpret_cast<const std::uint8_t*>(request.body.data()),
                       request.body.size())
          .get();
      body.close(std::ios_base::out).get();
      translated.set_body(body.create_istream(), request.body.size());
    }
    translated.headers()["host"] = host_;
    for (const auto& [name, value] : request.headers) {
      translated.headers()[name] = value;
    }
    return translated;
  }

  const std::string host_;  // and port, as in URLs
  web::http::client::http_client client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpClient>> MakeCpprestClient(
    const Endpoint& server, const std::shared_ptr<const TlsContext>& tls) {
  static const bool kStarted = [] {
    crossplat::threadpool::initialize_with_threads(kThreads);  // the library would start 40
    return true;
  }();
  static_cast<void>(kStarted);
  try {
    return std::make_unique<CpprestClient>(server, tls);
  } catch (...) {
    return StatusOf(std::current_exception());
  }
}

}  // namespace adamant::kube
