#include "tests/fakes/kube/scripted_api_server.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/mutex.h"
#include "tests/fakes/kube/scripted_connection.h"

namespace adamant::fakes {
namespace {

constexpr std::chrono::seconds kTimeout{10};

using Context = std::shared_ptr<SSL_CTX>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

Bio Reader(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

Context MakeContext(const KeyPair& shown, const std::string& client_authority) {
  Context context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  X509* certificate = PEM_read_bio_X509(Reader(shown.certificate).get(), nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(Reader(shown.key).get(), nullptr, nullptr, nullptr);
  const bool loaded = SSL_CTX_use_certificate(context.get(), certificate) == 1 &&
                      SSL_CTX_use_PrivateKey(context.get(), key) == 1;
  ADAMANT_CHECK(loaded, "the server's certificate fits its key");
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (!client_authority.empty()) {
    X509* authority = PEM_read_bio_X509(Reader(client_authority).get(), nullptr, nullptr, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority);
    X509_free(authority);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

int Listen(const std::string& host, int port) {
  const bool six = host.find(':') != std::string::npos;
  sockaddr_storage address{};
  socklen_t size = 0;
  if (six) {
    auto& to = reinterpret_cast<sockaddr_in6&>(address);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET6, host.c_str(), &to.sin6_addr);
    size = sizeof(to);
  } else {
    auto& to = reinterpret_cast<sockaddr_in&>(address);
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, host.c_str(), &to.sin_addr);
    size = sizeof(to);
  }
  const int listener = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool listens = bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       listen(listener, SOMAXCONN) == 0;
  ADAMANT_CHECK(listens, "the port is free");
  return listener;
}

int PortOf(int listener) {
  sockaddr_in6 address{};  // the port is where it is in sockaddr_in
  socklen_t size = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

}  // namespace

class ScriptedApiServer::Impl {
 public:
  explicit Impl(const Options& options)
      : options_(options), listener_(Listen(options.host, options.port)), port(PortOf(listener_)) {
    signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    UseCertificate(authority.Issue(
        {.common_name = "kube-apiserver", .names = {"127.0.0.1", "::1", "localhost"}}));
    accepter_ = std::thread([this] { AcceptAll(); });
  }

  ~Impl() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    shutdown(listener_, SHUT_RDWR);
    accepter_.join();
    close(listener_);
    CutConnections();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  void AddRule(std::string prefix, Answer answer, bool once) {
    const MutexLock lock(mutex_);
    rules_.push_back({.prefix = std::move(prefix), .answer = std::move(answer), .once = once});
  }

  void ForgetRules() {
    const MutexLock lock(mutex_);
    rules_.clear();
  }

  void Open(const std::string& gate) {
    const MutexLock lock(mutex_);
    gates_.insert(gate);
    changed_.NotifyAll();
  }

  std::vector<ReceivedRequest> Requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

  template <class Condition>
  bool WaitUntil(const Condition& condition) const {
    const auto deadline = std::chrono::steady_clock::now() + kTimeout;
    const MutexLock lock(mutex_);
    while (!condition(requests_.size(), live_.size())) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0) {
        return false;
      }
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }

  void CloseIdleConnections() {
    const MutexLock lock(mutex_);
    for (Live& live : live_) {
      live.close_when_idle = true;
      CloseIfIdle(live);
    }
  }

  void CutConnections() {
    const MutexLock lock(mutex_);
    for (const Live& live : live_) {
      live.connection->Shutdown();
    }
  }

  void UseCertificate(const KeyPair& certificate) {
    const MutexLock lock(mutex_);
    context_ = MakeContext(certificate,
                           options_.ask_for_client_certificate ? authority.certificate() : "");
  }

  void Refuse(bool refuse) {
    const MutexLock lock(mutex_);
    refuse_ = refuse;
  }

 private:
  struct Rule {
    std::string prefix;
    Answer answer;
    bool once;
  };
  struct Live {
    ScriptedConnection* connection;
    bool idle = false;  // waits for a request
    bool close_when_idle = false;
  };
  using LiveList = std::list<Live>;

  void AcceptAll() {
    for (int number = 1;; ++number) {
      const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor < 0) {
        return;
      }
      const MutexLock lock(mutex_);
      if (stopped_ || refuse_) {
        close(descriptor);
        continue;
      }
      threads_.emplace_back([this, descriptor, number, context = context_] {
        Serve(descriptor, context.get(), number);
      });
    }
  }

  void Serve(int descriptor, SSL_CTX* context, int number) {
    ScriptedConnection connection(descriptor, options_.tls ? context : nullptr, number);
    LiveList::iterator live;
    {
      const MutexLock lock(mutex_);
      if (stopped_) {
        return;
      }
      live = live_.insert(live_.end(), {.connection = &connection});
      changed_.NotifyAll();
    }
    if (connection.Accept()) {
      SetIdle(live, true);
      while (std::optional<ReceivedRequest> request = connection.ReadRequest()) {
        SetIdle(live, false);
        if (!Play(AnswerTo(*request), connection)) {
          break;
        }
        SetIdle(live, true);
      }
    }
    const MutexLock lock(mutex_);
    live_.erase(live);
    changed_.NotifyAll();
  }

  void SetIdle(LiveList::iterator live, bool idle) {
    const MutexLock lock(mutex_);
    live->idle = idle;
    CloseIfIdle(*live);
  }

  static void CloseIfIdle(const Live& live) {
    if (live.idle && live.close_when_idle) {
      live.connection->Shutdown();
    }
  }

  Reply AnswerTo(const ReceivedRequest& request) {
    Answer answer = [](const ReceivedRequest&) { return Reply::Json(404, "{}"); };
    {
      const MutexLock lock(mutex_);
      requests_.push_back(request);
      changed_.NotifyAll();
      const std::string line = request.method + " " + request.target;
      for (auto rule = rules_.begin(); rule != rules_.end(); ++rule) {
        if (line.starts_with(rule->prefix)) {
          answer = rule->answer;
          if (rule->once) {
            rules_.erase(rule);
          }
          break;
        }
      }
    }
    return answer(request);
  }

  // Returns whether the connection stays open.
  bool Play(const Reply& reply, ScriptedConnection& connection) {
    for (const Reply::Step& step : reply.steps()) {
      switch (step.kind) {
        case Reply::Step::Kind::kBytes:
          if (!connection.Write(step.text)) {
            return false;
          }
          break;
        case Reply::Step::Kind::kWait:
        case Reply::Step::Kind::kWaitFor:
          Pause(step);
          break;
        case Reply::Step::Kind::kEndOfChunks:
          connection.Write("0\r\n\r\n");
          break;
        case Reply::Step::Kind::kReset:
          connection.Reset();
          return false;
        case Reply::Step::Kind::kSilence:
          connection.WaitForClose();
          return false;
        case Reply::Step::Kind::kClose:
          connection.Close();
          return false;
        case Reply::Step::Kind::kCut:
          return false;
      }
    }
    return true;
  }

  void Pause(const Reply::Step& step) {
    const auto deadline = std::chrono::steady_clock::now() + step.time;
    const MutexLock lock(mutex_);
    while (!stopped_) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (step.kind == Reply::Step::Kind::kWaitFor) {
        if (gates_.contains(step.text)) {
          return;
        }
        changed_.Wait(mutex_);
      } else if (left.count() <= 0) {
        return;
      } else {
        changed_.WaitFor(mutex_, left);
      }
    }
  }

  const Options options_;
  const int listener_;

 public:
  const int port;
  const CertificateAuthority authority;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool refuse_ ABSL_GUARDED_BY(mutex_) = false;
  Context context_ ABSL_GUARDED_BY(mutex_);
  std::list<Rule> rules_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> gates_ ABSL_GUARDED_BY(mutex_);
  std::vector<ReceivedRequest> requests_ ABSL_GUARDED_BY(mutex_);
  LiveList live_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // grows on the accepter's thread
  std::thread accepter_;
};

ScriptedApiServer::ScriptedApiServer() : ScriptedApiServer(Options{}) {}
ScriptedApiServer::ScriptedApiServer(const Options& options)
    : host_(options.host), tls_(options.tls), impl_(std::make_unique<Impl>(options)) {}
ScriptedApiServer::~ScriptedApiServer() = default;

int ScriptedApiServer::port() const { return impl_->port; }

std::string ScriptedApiServer::url() const {
  const bool six = host_.find(':') != std::string::npos;
  return (tls_ ? "https://" : "http://") + (six ? "[" + host_ + "]" : host_) + ":" +
         std::to_string(port());
}

const CertificateAuthority& ScriptedApiServer::authority() const { return impl_->authority; }

void ScriptedApiServer::Once(std::string prefix, Reply reply) {
  impl_->AddRule(
      std::move(prefix),
      [reply = std::move(reply)](const ReceivedRequest&) { return reply; },
      true);
}

void ScriptedApiServer::Always(std::string prefix, Reply reply) {
  Always(std::move(prefix), [reply = std::move(reply)](const ReceivedRequest&) { return reply; });
}

void ScriptedApiServer::Always(std::string prefix, Answer answer) {
  impl_->AddRule(std::move(prefix), std::move(answer), false);
}

void ScriptedApiServer::ForgetRules() { impl_->ForgetRules(); }
void ScriptedApiServer::Open(const std::string& gate) { impl_->Open(gate); }
std::vector<ReceivedRequest> ScriptedApiServer::requests() const { return impl_->Requests(); }

bool ScriptedApiServer::WaitForRequests(std::size_t count) const {
  return impl_->WaitUntil([&](std::size_t requests, std::size_t) { return requests >= count; });
}

bool ScriptedApiServer::WaitForConnections(std::size_t count) const {
  return impl_->WaitUntil([&](std::size_t, std::size_t open) { return open == count; });
}

void ScriptedApiServer::CloseIdleConnections() { impl_->CloseIdleConnections(); }
void ScriptedApiServer::CutConnections() { impl_->CutConnections(); }
void ScriptedApiServer::UseCertificate(const KeyPair& certificate) {
  impl_->UseCertificate(certificate);
}
void ScriptedApiServer::Refuse(bool refuse) { impl_->Refuse(refuse); }

}  // namespace adamant::fakes
