#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "services/common/base/system/listen.h"
#include "services/common/metrics/metrics.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/grpc_log.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/stream_guard.h"
#include "services/common/rpc/tls/channel_security.h"
#include "services/common/rpc/tls/failed_handshakes.h"
#include "services/common/rpc/tls/server_security.h"
#include "services/common/security/certificate_authority.h"
#include "services/common/security/identity_store.h"
#include "tests/fakes/required_tls13.h"
#include "tests/unit/services/common/security/certified.h"

namespace adamant::rpc {
namespace {

using security::As;
using security::CertificateAuthority;
using security::Certified;
using security::IdentityStore;
using security::kWorker;
using security::MakeAuthority;
using security::PeerIdentity;
using security::Renew;
using security::Role;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

const bool kPrepared = [] {
  RouteGrpcLog();
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that the server may have closed
  return true;
}();

constexpr char kWork[] = "/adamant.v1.DataServer/Work";
constexpr char kDeliver[] = "/adamant.v1.Replication/Deliver";
constexpr char kUnknown[] = "/adamant.v1.DataServer/Unknown";
constexpr char kGetRecord[] = "/adamant.v1.ParameterServer/GetRecord";
constexpr char kJob[] = "17";

security::WallTime Now() { return std::chrono::system_clock::now(); }

// Refused calls, as the server tells of them. Threads: any.
class Refusals {
 public:
  void Add(const Refusal& refusal) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::string(refusal.method) + " " + std::string(refusal.peer) + ": " +
                     std::string(refusal.why));
  }
  [[nodiscard]] std::vector<std::string> Get() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

// A call of one request and one reply, as generated clients make it.
absl::StatusOr<std::string> CallOnce(grpc::Channel& channel, const char* method_name) {
  grpc::ClientContext context;
  context.AddMetadata(kJobKey, kJob);
  const grpc::internal::RpcMethod method(method_name, grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Slice slice("request");
  grpc::ByteBuffer reply;
  const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
      &channel, method, &context, grpc::ByteBuffer(&slice, 1), &reply);
  if (!status.ok()) {
    return FromGrpc(status);
  }
  grpc::Slice bytes;
  EXPECT_TRUE(reply.DumpToSingleSlice(&bytes).ok());
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

OutgoingFrame Frame(const std::string& text) { return {.header = text, .payload = {}}; }

// A data server of the job: answers each frame with who has sent it.
class TlsTest : public testing::TestWithParam<bool> {
 protected:
  void Start(ServerSecurity security = {}) {
    if (security.identity == nullptr) {
      security.identity = server_identity_;
    }
    security.on_refused = [this](const Refusal& refusal) { refusals_.Add(refusal); };
    ServerOptions options{.security = std::move(security)};
    if (GetParam()) {
      options.is_own_job = [](std::string_view job) { return job == kJob; };
    }
    const auto echo = [](FrameStream& stream) -> absl::Status {
      while (true) {
        auto frame = stream.Read();
        if (!frame.ok()) {
          return absl::IsOutOfRange(frame.status()) ? absl::OkStatus() : frame.status();
        }
        const PeerIdentity* const peer = stream.peer();
        const std::string name = peer == nullptr ? "nobody" : security::FormatIdentity(*peer);
        const absl::Status sent = stream.Write(Frame(name));
        if (!sent.ok()) {
          return sent;
        }
      }
    };
    const auto answer = [](const std::string& /*request*/,
                           const Caller& caller) -> absl::StatusOr<std::string> {
      return caller.identity == nullptr ? "nobody" : security::FormatIdentity(*caller.identity);
    };
    auto server = StartServer(options,
                              {},
                              {{.name = kWork, .handler = echo},
                               {.name = kDeliver, .handler = echo},
                               {.name = kUnknown, .handler = echo}},
                              {{.name = kGetRecord, .max_request_bytes = 1024, .handler = answer}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  [[nodiscard]] std::unique_ptr<FrameStream> Open(const ChannelSecurity* security,
                                                  const std::string& method = kWork) const {
    return OpenFrameStream(server_->address(), method, 1 << 20, {}, kJob, security);
  }

  [[nodiscard]] static ChannelSecurity To(std::shared_ptr<const IdentityStore> identity,
                                          Role role = Role::kDataServer) {
    const PeerIdentity own = identity->Get()->content.identity;
    return {.identity = std::move(identity), .peer = security::ExpectMember(own, role)};
  }

  static absl::StatusOr<std::string> Ask(FrameStream& stream) {
    stream.Write(Frame("hello")).IgnoreError();  // Read says why not
    absl::StatusOr<IncomingFrame> frame = stream.Read();
    return frame.ok() ? absl::StatusOr<std::string>(std::string(frame->header())) : frame.status();
  }

  [[nodiscard]] absl::StatusOr<std::string> Call(const ChannelSecurity& security,
                                                 const std::string& method = kWork) const {
    return Ask(*Open(&security, method));
  }

  [[nodiscard]] absl::StatusOr<std::string> CallAs(const PeerIdentity& identity,
                                                   const std::string& method = kWork) const {
    return Call(To(Certified(authority_, identity)), method);
  }

  void TearDown() override {
    if (server_ != nullptr) {
      server_->Stop();
    }
  }

  // Of those that the server has seen fail.
  [[nodiscard]] bool Counts(const std::string& reason, int failures) const {
    return registry_.Text().find("adamant_tls_handshakes_failed_total{reason=\"" + reason + "\"} " +
                                 std::to_string(failures) + "\n") != std::string::npos;
  }

  metrics::Registry registry_;
  const FailedHandshakes handshakes_{registry_};
  CertificateAuthority authority_ = MakeAuthority();
  const PeerIdentity server_is_ = As(Role::kDataServer, 1);
  std::shared_ptr<IdentityStore> server_identity_ = Certified(authority_, server_is_);
  Refusals refusals_;
  std::unique_ptr<Server> server_;
};

std::string NameOf(const testing::TestParamInfo<bool>& info) {
  return info.param ? "BehindADoor" : "Listening";
}

INSTANTIATE_TEST_SUITE_P(Servers, TlsTest, testing::Bool(), NameOf);

TEST_P(TlsTest, TheRightRoleIsLetInAndKnown) {
  Start();
  const auto answer = CallAs(kWorker);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, security::FormatIdentity(kWorker));
  EXPECT_TRUE(refusals_.Get().empty());
  for (const char* reason : {"no_certificate", "untrusted", "no_tls", "other"}) {
    EXPECT_TRUE(Counts(reason, 0)) << reason;
  }
}

TEST_P(TlsTest, AnotherRoleIsRefusedAndTold) {
  Start();
  const PeerIdentity peer = As(Role::kParameterServer);
  const auto answer = CallAs(peer);
  EXPECT_TRUE(absl::IsPermissionDenied(answer.status())) << answer.status();
  const std::string why =
      std::string(kWork) + ": " + security::FormatIdentity(peer) + " may not call it";
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr(why));
  EXPECT_THAT(
      refusals_.Get(),
      testing::ElementsAre(std::string(kWork) + " " + security::FormatIdentity(peer) + ": " + why));
}

TEST_P(TlsTest, EachMethodIsForItsRoles) {
  Start();
  EXPECT_TRUE(CallAs(As(Role::kParameterServer), kDeliver).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(CallAs(kWorker, kDeliver).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(CallAs(kWorker, kUnknown).status()));
}

TEST_P(TlsTest, ServicesOfGrpcAreGuarded) {
  Start();
  EXPECT_TRUE(absl::IsPermissionDenied(CallAs(kWorker, "/grpc.health.v1.Health/Watch").status()));
  const ChannelSecurity security = To(Certified(authority_, kWorker));
  const auto channel = NewChannel(server_->address(), 1 << 20, {}, &security);
  EXPECT_FALSE(
      absl::IsPermissionDenied(CallOnce(*channel, "/grpc.health.v1.Health/Check").status()));
}

TEST_P(TlsTest, AUnaryCallKnowsWhoAsks) {
  Start();
  const PeerIdentity peer = As(Role::kDataServer, 2);
  const ChannelSecurity security = To(Certified(authority_, peer));
  const auto channel = NewChannel(server_->address(), 1 << 20, {}, &security);
  EXPECT_EQ(CallOnce(*channel, kGetRecord).value(), security::FormatIdentity(peer));
}

TEST_P(TlsTest, AConnectionOutlivesItsCertificateByItsGrace) {
  Start({.grace = seconds(1)});
  const auto peer = Certified(authority_, As(Role::kDataServer, 2), {.life = seconds(3)});
  const ChannelSecurity security = To(peer);
  const auto channel = NewChannel(server_->address(), 1 << 20, {}, &security);
  EXPECT_TRUE(CallOnce(*channel, kGetRecord).ok());
  std::this_thread::sleep_until(peer->Get()->content.not_after + milliseconds(1100));
  EXPECT_TRUE(absl::IsUnauthenticated(CallOnce(*channel, kGetRecord).status()));
}

TEST_P(TlsTest, AnotherJobIsRefused) {
  Start();
  PeerIdentity peer = kWorker;
  peer.job_uid = "another";
  ChannelSecurity security = To(Certified(authority_, peer));
  security.peer = security::ExpectMember(kWorker, Role::kDataServer);
  const auto answer = Call(security);
  EXPECT_TRUE(absl::IsPermissionDenied(answer.status())) << answer.status();
  EXPECT_EQ(refusals_.Get().size(), 1);
}

TEST_P(TlsTest, WithoutACertificateNobodyGetsIn) {
  Start();
  const auto answer = Call(
      {.roots = authority_.roots(), .peer = security::ExpectMember(kWorker, Role::kDataServer)});
  EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
  EXPECT_FALSE(Counts("no_certificate", 0));
}

TEST_P(TlsTest, ACertificateThatHasEndedIsRefused) {
  Start();
  const auto ended = Certified(authority_, kWorker, {.begin = Now() - hours(2), .life = hours(1)});
  EXPECT_TRUE(absl::IsUnavailable(Call(To(ended)).status()));
  EXPECT_FALSE(Counts("untrusted", 0));
}

TEST_P(TlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  Start();
  const CertificateAuthority other = MakeAuthority();
  const auto store = Certified(other, kWorker);
  ASSERT_TRUE(store->SetRoots(authority_.roots()).ok());  // it trusts the server
  EXPECT_TRUE(absl::IsUnavailable(Call(To(store)).status()));
  EXPECT_FALSE(Counts("untrusted", 0));
}

TEST_P(TlsTest, PlainTextIsRefused) {
  Start();
  EXPECT_TRUE(absl::IsUnavailable(Ask(*Open(nullptr)).status()));
  EXPECT_FALSE(Counts("no_tls", 0));
}

TEST_P(TlsTest, AClientTalksToNobodyElse) {
  Start();
  const auto worker = Certified(authority_, kWorker);
  const auto status_of = [&](const security::ExpectedPeer& expected) {
    return Call({.identity = worker, .peer = expected}).status();
  };
  EXPECT_TRUE(status_of(security::ExpectMember(kWorker, Role::kDataServer, 1)).ok());
  EXPECT_TRUE(
      absl::IsUnavailable(status_of(security::ExpectMember(kWorker, Role::kDataServer, 0))));
  EXPECT_TRUE(
      absl::IsUnavailable(status_of(security::ExpectMember(kWorker, Role::kParameterServer))));
  EXPECT_TRUE(absl::IsUnavailable(status_of(security::ExpectOperator("adamant.local"))));
  PeerIdentity other = kWorker;
  other.job_uid = "another";
  EXPECT_TRUE(absl::IsUnavailable(status_of(security::ExpectMember(other, Role::kDataServer))));
  ASSERT_TRUE(worker->SetRoots(MakeAuthority().roots()).ok());
  EXPECT_TRUE(absl::IsUnavailable(status_of(security::ExpectMember(kWorker, Role::kDataServer))));
}

TEST_P(TlsTest, RenewalAndRollOverDisturbNoStream) {
  Start();
  const auto worker = Certified(authority_, kWorker);
  const ChannelSecurity security = To(worker);
  const auto old_stream = Open(&security);
  ASSERT_TRUE(Ask(*old_stream).ok());
  const auto late = Certified(authority_, kWorker);  // never renewed

  ASSERT_TRUE(authority_.PrepareNext(Now() - hours(1), hours(24)).ok());
  ASSERT_TRUE(server_identity_->SetRoots(authority_.roots()).ok());
  ASSERT_TRUE(worker->SetRoots(authority_.roots()).ok());
  ASSERT_TRUE(authority_.SwitchToNext().ok());
  Renew(*server_identity_, authority_, server_is_);
  EXPECT_TRUE(Call(security).ok());  // the server has a new certificate, the worker an old one
  Renew(*worker, authority_, kWorker);
  EXPECT_TRUE(Call(security).ok());
  EXPECT_TRUE(Ask(*old_stream).ok());

  authority_.DropPrevious();
  ASSERT_TRUE(server_identity_->SetRoots(authority_.roots()).ok());
  ASSERT_TRUE(worker->SetRoots(authority_.roots()).ok());
  ASSERT_TRUE(late->SetRoots(authority_.roots()).ok());
  EXPECT_TRUE(Call(security).ok());
  EXPECT_TRUE(Ask(*old_stream).ok());
  EXPECT_TRUE(absl::IsUnavailable(Call(To(late)).status()));
}

TEST_P(TlsTest, RootsThatAreDroppedLetNobodyInAnyMore) {
  Start();
  const auto worker = Certified(authority_, kWorker);
  ASSERT_TRUE(Call(To(worker)).ok());
  CertificateAuthority next = MakeAuthority();
  ASSERT_TRUE(server_identity_->SetRoots(next.roots()).ok());
  EXPECT_TRUE(absl::IsUnavailable(Call(To(worker)).status()));
}

TEST_P(TlsTest, ACallOutlivesItsCertificateByItsGrace) {
  Start({.grace = seconds(2)});
  const auto worker = Certified(authority_, kWorker, {.life = seconds(3)});
  const ChannelSecurity security = To(worker);
  const auto stream = Open(&security);
  ASSERT_TRUE(Ask(*stream).ok());
  const auto end = worker->Get()->content.not_after;
  std::this_thread::sleep_until(end + milliseconds(500));
  EXPECT_TRUE(Ask(*stream).ok());
  EXPECT_TRUE(absl::IsCancelled(stream->Read().status()));
  EXPECT_GE(Now(), end + seconds(2));
  EXPECT_LT(Now(), end + seconds(10));
}

// What a client of OpenSSL comes to that speaks at most `version`.
bool ShakesHands(const std::string& address, const IdentityStore& identity, int version) {
  const auto own = identity.Get();
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  BIO* const chain = BIO_new_mem_buf(own->chain.data(), static_cast<int>(own->chain.size()));
  X509* const certificate = PEM_read_bio_X509(chain, nullptr, nullptr, nullptr);
  BIO* const pem = BIO_new_mem_buf(own->key.data(), static_cast<int>(own->key.size()));
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(pem, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context.get(), certificate);
  SSL_CTX_use_PrivateKey(context.get(), key);
  SSL_CTX_set_max_proto_version(context.get(), version);
  BIO_free(chain);
  BIO_free(pem);
  X509_free(certificate);
  EVP_PKEY_free(key);

  BIO* const connection = BIO_new_connect(address.c_str());
  const std::unique_ptr<SSL, void (*)(SSL*)> tls(SSL_new(context.get()), SSL_free);
  SSL_set_bio(tls.get(), connection, connection);
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls.get(), kHttp2, sizeof(kHttp2));
  return BIO_do_connect(connection) == 1 && SSL_connect(tls.get()) == 1 &&
         SSL_version(tls.get()) == version;
}

TEST_P(TlsTest, OlderVersionsOfTlsAreRefused) {
  ASSERT_TRUE(fakes::kTls13IsRequired);
  Start();
  const auto worker = Certified(authority_, kWorker);
  EXPECT_TRUE(ShakesHands(server_->address(), *worker, TLS1_3_VERSION));
  EXPECT_FALSE(ShakesHands(server_->address(), *worker, TLS1_2_VERSION));
  EXPECT_FALSE(Counts("other", 0));
}

// A connection to `address` on which `bytes` were sent; the caller closes it.
int ConnectAndSend(const std::string& address, const std::string& bytes) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &where.sin_addr);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  EXPECT_EQ(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  return socket;
}

TEST_P(TlsTest, StopDoesNotWaitForHandshakes) {
  const std::string half_a_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  const auto worker = Certified(authority_, kWorker);
  for (int i = 0; i < 5; ++i) {
    Start();
    std::vector<int> sockets;
    for (const std::string& bytes : {std::string(), half_a_hello, std::string(64, 'x')}) {
      sockets.push_back(ConnectAndSend(server_->address(), bytes));
    }
    std::jthread late([&, address = server_->address()] {
      for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        ShakesHands(address, *worker, version);  // comes to an end either way
      }
    });
    std::this_thread::sleep_for(milliseconds(10 * i));
    const auto begin = std::chrono::steady_clock::now();
    server_->Stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(4));
    server_.reset();
    for (const int socket : sockets) {
      close(socket);
    }
  }
}

class StrangersPortTest : public TlsTest {
 protected:
  void SetUp() override { Start({.method_of_strangers = kDeliver}); }

  [[nodiscard]] ChannelSecurity Stranger() const {
    return {.roots = authority_.roots(),
            .peer = security::ExpectMember(kWorker, Role::kDataServer)};
  }
};

INSTANTIATE_TEST_SUITE_P(Servers, StrangersPortTest, testing::Bool(), NameOf);

TEST_P(StrangersPortTest, StrangersMayCallOneMethod) {
  const auto answer = Call(Stranger(), kDeliver);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "nobody");
  EXPECT_TRUE(absl::IsPermissionDenied(Call(Stranger(), kWork).status()));
}

TEST_P(StrangersPortTest, NobodyMayCallMoreThere) {
  EXPECT_TRUE(absl::IsPermissionDenied(CallAs(kWorker, kWork).status()));
  EXPECT_EQ(CallAs(kWorker, kDeliver).value(), "nobody");
}

TEST_P(StrangersPortTest, StrangersKnowWhomTheyTalkTo) {
  ChannelSecurity security = Stranger();
  security.peer = security::ExpectOperator("adamant.local");
  EXPECT_TRUE(absl::IsUnavailable(Call(security, kDeliver).status()));
  security = Stranger();
  security.roots = MakeAuthority().roots();
  EXPECT_TRUE(absl::IsUnavailable(Call(security, kDeliver).status()));
}

}  // namespace
}  // namespace adamant::rpc
