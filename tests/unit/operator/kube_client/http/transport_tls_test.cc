#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "operator/kube_client/base/transport.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/scripted_api_server.h"
#include "tests/unit/operator/kube_client/http/transport_rig.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::kube {
namespace {

using fakes::CertificateAuthority;
using fakes::KeyPair;
using fakes::Reply;
using fakes::ScriptedApiServer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kLong{20'000};

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

/// The error of a request to a server that shows `certificate`.
std::string Refusal(ScriptedApiServer& server, const KeyPair& certificate) {
  server.UseCertificate(certificate);
  const absl::Status status = TransportRig(ConfigFor(server)).Get("/").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(server.requests().empty());
  return std::string(status.message());
}

TEST(TransportTlsTest, AServerOfAnotherAuthorityIsRefused) {
  ScriptedApiServer server;
  EXPECT_THAT(Refusal(server, CertificateAuthority("other").Issue({.names = {"127.0.0.1"}})),
              AllOf(HasSubstr(server.url()), HasSubstr("unable to get local issuer certificate")));
}

TEST(TransportTlsTest, AServerOfAnotherNameIsRefused) {
  ScriptedApiServer server;
  EXPECT_THAT(Refusal(server, server.authority().Issue({.names = {"127.0.0.2", "localhost"}})),
              AllOf(HasSubstr("IP address mismatch"), HasSubstr("for 127.0.0.1")));
}

TEST(TransportTlsTest, ACertificateThatHasExpiredIsRefused) {
  ScriptedApiServer server;
  EXPECT_THAT(Refusal(server,
                      server.authority().Issue(
                          {.names = {"127.0.0.1"}, .valid_for = std::chrono::hours(-1)})),
              HasSubstr("certificate has expired"));
}

TEST(TransportTlsTest, TheNameToVerifyCanBeGiven) {
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  server.UseCertificate(server.authority().Issue({.names = {"kube.example"}}));
  Config config = ConfigFor(server);
  config.tls_server_name = "kube.example";
  TransportRig transport(config);
  const auto response = transport.Get("/");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests()[0].server_name, "kube.example");
  EXPECT_EQ(server.requests()[0].headers.at("host"), server.url().substr(8));
}

TEST(TransportTlsTest, AnyServerIsTakenOnlyIfInsecureIsAskedFor) {
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  Config config = ConfigFor(server);
  config.authorities = {};  // the system's, which do not know this server
  EXPECT_TRUE(absl::IsUnavailable(TransportRig(config).Get("/").status()));
  config.insecure_skip_tls_verify = true;
  EXPECT_TRUE(TransportRig(config).Get("/").ok());
}

TEST(TransportTlsTest, WhenTheAuthorityChangesNewRequestsTrustItAndStreamsGoOn) {
  const TestFolder folder;
  const std::filesystem::path file = folder.path() / "ca.crt";
  ScriptedApiServer server;
  server.Once("GET /watch", Reply::Stream().Line("one").WaitFor("go").Line("two"));
  server.Always("GET /get", Reply::Json(200, "{}"));
  Write(file, server.authority().certificate());
  Config config = ConfigFor(server);
  config.authorities = {.text = "", .file = file};
  FakeClock clock;
  Credentials credentials(config, clock);
  HttpTransport transport(config, credentials, &MakeCpprestClient);
  const auto get = [&] { return transport.Send({.target = "/get"}, Cancellation()); };
  std::vector<std::string> lines;
  const auto response = transport.Stream(
      {.target = "/watch"},
      kLong,
      [&](std::string_view line) {
        lines.emplace_back(line);
        if (lines.size() == 1) {
          EXPECT_TRUE(get().ok());
          const CertificateAuthority next("next-ca");
          server.UseCertificate(next.Issue({.names = {"127.0.0.1"}}));
          Write(file, next.certificate());
          clock.Advance(std::chrono::seconds(6));
          const auto after = get();
          EXPECT_TRUE(after.ok()) << after.status();
          EXPECT_EQ(server.requests().back().connection, 3);
          server.Open("go");
        }
        return true;
      },
      Cancellation());
  EXPECT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(lines, ElementsAre("one", "two"));
}

TEST(TransportTlsTest, ACertificateIsNotUsedBeforeItsKeyHasBeenWritten) {
  const TestFolder folder;
  ScriptedApiServer server({.ask_for_client_certificate = true});
  server.Always("", Reply::Json(200, "{}"));
  const KeyPair first = server.authority().Issue({.common_name = "first"});
  const KeyPair second = server.authority().Issue({.common_name = "second"});
  Config config = ConfigFor(server);
  config.certificate.file = folder.path() / "tls.crt";
  config.key.file = folder.path() / "tls.key";
  Write(config.certificate.file, first.certificate);
  Write(config.key.file, first.key);
  FakeClock clock;
  Credentials credentials(config, clock);
  HttpTransport transport(config, credentials, &MakeCpprestClient);
  const auto client = [&] {
    clock.Advance(std::chrono::seconds(6));
    const auto response = transport.Send({.target = "/"}, Cancellation());
    EXPECT_TRUE(response.ok()) << response.status();
    return server.requests().back().client;
  };
  EXPECT_EQ(client(), "first");
  Write(config.certificate.file, second.certificate);
  EXPECT_EQ(client(), "first");
  Write(config.key.file, second.key);
  EXPECT_EQ(client(), "second");
}

TEST(TransportTlsTest, CertificatesThatCannotBeReadAreRefusedByName) {
  const ScriptedApiServer server;
  const KeyPair client = server.authority().Issue({.common_name = "a"});
  const KeyPair other = server.authority().Issue({.common_name = "b"});
  const auto error = [&](const TextSource& authorities, const KeyPair& shown) {
    Config config = ConfigFor(server);
    config.authorities = authorities;
    config.certificate.text = shown.certificate;
    config.key.text = shown.key;
    const absl::Status status = TransportRig(config).Get("/").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  const TextSource good{.text = server.authority().certificate(), .file = {}};
  EXPECT_THAT(error({.text = "garbage", .file = {}}, client), HasSubstr("certificate authorities"));
  EXPECT_THAT(error(good, {.certificate = "garbage", .key = client.key}),
              HasSubstr("client certificate"));
  EXPECT_THAT(error(good, {.certificate = client.certificate, .key = "garbage"}),
              HasSubstr("client key"));
  EXPECT_THAT(error(good, {.certificate = client.certificate, .key = other.key}),
              HasSubstr("is not the key of the client certificate"));
}

TEST(TransportTlsTest, AfterA401TheTokenIsReadAgainAndTheRequestSentOnceMore) {
  const TestFolder folder;
  const std::filesystem::path file = folder.path() / "token";
  ScriptedApiServer server;
  server.Always("", [](const fakes::ReceivedRequest& request) {
    return Reply::Json(request.headers.at("authorization") == "Bearer new" ? 200 : 401, "{}");
  });
  Write(file, "old\n");
  Config config = ConfigFor(server);
  config.token.file = file;
  FakeClock clock;
  Credentials credentials(config, clock);
  HttpTransport transport(config, credentials, &MakeCpprestClient);
  const HttpRequest request{.method = "PUT", .target = "/", .body = "x"};
  const auto refused = transport.Send(request, Cancellation());
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(server.requests().size(), 1U);  // there was no other token to try
  Write(file, "new\n");
  const auto accepted = transport.Send(request, Cancellation());
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_EQ(accepted->status, 200);
  EXPECT_EQ(server.requests().size(), 3U);
  EXPECT_EQ(server.requests().back().body, "x");
}

TEST(TransportTlsTest, CredentialsThatCannotBeHadAreUnauthenticated) {
  const ScriptedApiServer server;
  Config config = ConfigFor(server);
  config.token.file = "/nonexistent/token";
  const absl::Status status = TransportRig(config).Get("/").status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/token"));
}

}  // namespace
}  // namespace adamant::kube
