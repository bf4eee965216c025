#include "operator/kube_client/http/http_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/certificates.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What the fake server does with one request.
struct Script {
  absl::StatusOr<HttpResponse> head = HttpResponse{.status = 200};
  std::vector<std::string> pieces = {};
  absl::Status end = {};  // after the pieces
  bool waits = false;     // for a cancellation, instead
  int slow = 0;           // so many waits for the head are in vain
};

/// The library's part, without a network.
class FakeCall final : public HttpCall {
 public:
  explicit FakeCall(Script script) : script_(std::move(script)) {}

  absl::StatusOr<HttpResponse> WaitForHead(Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    while (script_.waits && !cancelled_) {
      changed_.Wait(mutex_);
    }
    if (script_.slow > waits_++) {
      return absl::DeadlineExceededError("");
    }
    return cancelled_ ? absl::CancelledError("cancelled") : script_.head;
  }

  absl::StatusOr<std::string_view> WaitForPiece(Deadline /*deadline*/) override {
    if (next_ < script_.pieces.size()) {
      return std::string_view(script_.pieces[next_++]);
    }
    return script_.end.ok() ? absl::StatusOr<std::string_view>("") : script_.end;
  }

  void Cancel() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    changed_.NotifyAll();
  }

 private:
  const Script script_;
  std::size_t next_ = 0;
  int waits_ = 0;
  Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

/// Plays scripts in turn, the last one for ever, and keeps the requests; of all clients that are
/// made.
class FakeServer {
 public:
  explicit FakeServer(std::vector<Script> scripts) : scripts_(scripts.begin(), scripts.end()) {}

  HttpClientFactory Factory() {
    return [this](const Endpoint&, const std::shared_ptr<const TlsContext>&) {
      const MutexLock lock(mutex_);
      ++clients_;
      return std::make_unique<Client>(*this);
    };
  }

  std::vector<HttpRequest> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }
  int clients() const {
    const MutexLock lock(mutex_);
    return clients_;
  }

 private:
  class Client final : public HttpClient {
   public:
    explicit Client(FakeServer& server) : server_(server) {}
    absl::StatusOr<std::unique_ptr<HttpCall>> Start(const HttpRequest& request) override {
      const MutexLock lock(server_.mutex_);
      server_.requests_.push_back(request);
      Script script = server_.scripts_.front();
      if (server_.scripts_.size() > 1) {
        server_.scripts_.pop_front();
      }
      return std::make_unique<FakeCall>(std::move(script));
    }

   private:
    FakeServer& server_;
  };

  mutable Mutex mutex_;
  std::deque<Script> scripts_ ABSL_GUARDED_BY(mutex_);
  std::vector<HttpRequest> requests_ ABSL_GUARDED_BY(mutex_);
  int clients_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct Rig {
  explicit Rig(std::vector<Script> scripts, const HttpTransportOptions& options = {})
      : server(std::move(scripts)) {
    config.server = {.tls = true, .host = "kube", .port = 6443, .path = "/east"};
    config.token.file = folder.path() / "token";
    Write(config.token.file, "first");
    credentials = std::make_unique<Credentials>(config, clock);
    transport = std::make_unique<HttpTransport>(config, *credentials, server.Factory(), options);
  }

  static void Write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }

  TestFolder folder;
  FakeClock clock;
  Config config;
  FakeServer server;
  std::unique_ptr<Credentials> credentials;
  std::unique_ptr<HttpTransport> transport;
};

Script Answer(int status) { return {.head = HttpResponse{.status = status}}; }

TEST(HttpTransportTest, TheTokenAndOurNameAreSent) {
  Rig rig({Answer(200)}, {.user_agent = "adamant-operator/1"});
  ASSERT_TRUE(rig.transport->Send({.target = "/x"}, Cancellation()).ok());
  const HttpRequest request = rig.server.requests().front();
  EXPECT_EQ(request.headers.at("authorization"), "Bearer first");
  EXPECT_EQ(request.headers.at("user-agent"), "adamant-operator/1");
}

TEST(HttpTransportTest, AConnectionOfNoUseIsReplacedUntilOneIs) {
  const Script stale{.head = absl::AbortedError("stale")};
  Rig rig({stale, stale, stale, Answer(201)});
  const auto response =
      rig.transport->Send({.method = "POST", .target = "/x", .body = "b"}, Cancellation());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(rig.server.requests().size(), 4U);
  EXPECT_EQ(rig.server.requests().back().body, "b");
}

TEST(HttpTransportTest, AfterA401ItIsTriedOnceMoreWithAnotherTokenOnly) {
  Rig rig({Answer(401)});
  EXPECT_EQ(rig.transport->Send({.target = "/x"}, Cancellation())->status, 401);
  EXPECT_EQ(rig.server.requests().size(), 1U);
  Rig::Write(rig.config.token.file, "second");
  EXPECT_EQ(rig.transport->Send({.target = "/x"}, Cancellation())->status, 401);
  EXPECT_EQ(rig.server.requests().size(), 3U);
  EXPECT_EQ(rig.server.requests().back().headers.at("authorization"), "Bearer second");
}

TEST(HttpTransportTest, AStreamIsRefreshedLikewiseAndItsLinesCount) {
  Rig rig({Answer(200), Answer(401), {.pieces = {"o", "ne\ntwo", "\nthree"}}});
  EXPECT_EQ(rig.transport->Send({.target = "/x"}, Cancellation())->status, 200);
  Rig::Write(rig.config.token.file, "second");
  std::vector<std::string> lines;
  const auto response = rig.transport->Stream(
      {.target = "/x"},
      std::chrono::seconds(30),
      [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
      },
      Cancellation());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  EXPECT_EQ(rig.server.requests().size(), 3U);
}

TEST(HttpTransportTest, WhoWaitsDoesSomethingElseMeanwhile) {
  Rig rig({Script{.slow = 3}});
  int calls = 0;
  HttpRequest request;
  request.meanwhile = [&calls] { ++calls; };
  EXPECT_TRUE(rig.transport->Send(request, {}).ok());
  EXPECT_EQ(calls, 3);
}

TEST(HttpTransportTest, WhoNeedNotWaitDoesNothingElse) {
  Rig rig({Script{}});
  HttpRequest request;
  request.meanwhile = [] { ADD_FAILURE(); };
  EXPECT_TRUE(rig.transport->Send(request, {}).ok());
}

TEST(HttpTransportTest, ErrorsNameTheRequestAndTheServer) {
  const auto error = [](const Script& script, bool stream = false) {
    Rig rig({script});
    const HttpRequest request{.method = "PATCH", .target = "/api/v1/pods/x?force=true"};
    const absl::Status status = stream ? rig.transport
                                             ->Stream(
                                                 request,
                                                 std::chrono::seconds(30),
                                                 [](std::string_view) { return true; },
                                                 Cancellation())
                                             .status()
                                       : rig.transport->Send(request, Cancellation()).status();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("PATCH https://kube:6443/east/api/v1/pods/x: "));
    return status.ToString();
  };
  EXPECT_THAT(error({.head = absl::UnavailableError("broken")}), HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(error({.head = absl::DeadlineExceededError("")}), HasSubstr("no answer within 30 s"));
  EXPECT_THAT(error({.end = absl::DeadlineExceededError("")}),
              HasSubstr("no whole answer within 30 s"));
  EXPECT_THAT(error({.end = absl::DeadlineExceededError("")}, true),
              HasSubstr("nothing has arrived within 30 s"));
  EXPECT_THAT(error({.pieces = {"half"}, .end = absl::UnavailableError("cut")}, true),
              HasSubstr("cut"));
}

TEST(HttpTransportTest, ChangedAuthoritiesMakeNewConnectionsIfTheyCanBeUsed) {
  Rig rig({Answer(200)});
  rig.config.authorities.file = rig.folder.path() / "ca.crt";
  Credentials credentials(rig.config, rig.clock);
  HttpTransport transport(rig.config, credentials, rig.server.Factory());
  const auto clients_with = [&](const std::string& authorities) {
    Rig::Write(rig.config.authorities.file, authorities);
    rig.clock.Advance(std::chrono::seconds(6));
    EXPECT_TRUE(transport.Send({}, Cancellation()).ok());
    return rig.server.clients();
  };
  const std::string first = fakes::CertificateAuthority().certificate();
  EXPECT_EQ(clients_with(first), 1);
  EXPECT_EQ(clients_with(first), 1);
  EXPECT_EQ(clients_with("half-written"), 1);
  EXPECT_EQ(clients_with(fakes::CertificateAuthority().certificate()), 2);
}

TEST(HttpTransportTest, ManyThreadsSendAndCancel) {
  Rig rig({Script{.waits = true}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&rig] {
      for (int i = 0; i < 50; ++i) {
        const Cancellation cancellation;
        std::thread canceller([&cancellation] { cancellation.Cancel(); });
        EXPECT_TRUE(
            absl::IsCancelled(rig.transport->Send({.target = "/x"}, cancellation).status()));
        canceller.join();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(rig.server.clients(), 1);
}

}  // namespace
}  // namespace adamant::kube
