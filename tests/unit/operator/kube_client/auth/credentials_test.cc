#include "operator/kube_client/auth/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "operator/kube_client/auth/exec_credentials.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::kube {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr char kVersion[] = "client.authentication.k8s.io/v1";

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

std::string TokenOf(const absl::StatusOr<std::shared_ptr<const Credential>>& credential) {
  return credential.ok() ? (*credential)->token : credential.status().ToString();
}

TEST(CredentialsTest, FilesAreReadAgainAfterFiveSecondsAndAfterA401) {
  const TestFolder folder;
  FakeClock clock;
  Config config;
  config.token.file = folder.path() / "token";
  Write(config.token.file, " first\n");
  Credentials credentials(config, clock);
  EXPECT_EQ(TokenOf(credentials.Get({})), "first");
  Write(config.token.file, "second");
  clock.Advance(seconds(4));
  EXPECT_EQ(TokenOf(credentials.Get({})), "first");
  clock.Advance(seconds(1));
  const auto second = credentials.Get({});
  EXPECT_EQ(TokenOf(second), "second");
  Write(config.token.file, "third");
  EXPECT_EQ(TokenOf(credentials.GetAfter(**second, {})), "third");
  EXPECT_EQ(TokenOf(credentials.Get({})), "third");
}

TEST(CredentialsTest, WhatHasNotChangedIsTheSameObject) {
  FakeClock clock;
  Config config;
  config.token.text = "t";
  Credentials credentials(config, clock);
  const auto first = credentials.Get({});
  clock.Advance(seconds(60));
  EXPECT_EQ(credentials.Get({})->get(), first->get());
  EXPECT_EQ(credentials.GetAfter(**first, {})->get(), first->get());
}

TEST(CredentialsTest, AFileThatVanishesStaysInUseAsItWas) {
  const TestFolder folder;
  FakeClock clock;
  Config config;
  config.token.file = folder.path() / "token";
  Credentials credentials(config, clock);
  EXPECT_TRUE(absl::IsNotFound(credentials.Get({}).status()));
  Write(config.token.file, "first");
  EXPECT_EQ(TokenOf(credentials.Get({})), "first");
  std::filesystem::remove(config.token.file);
  clock.Advance(seconds(6));
  EXPECT_EQ(TokenOf(credentials.Get({})), "first");
  Write(config.token.file, "\n");
  clock.Advance(seconds(6));
  EXPECT_EQ(TokenOf(credentials.Get({})), "first");
}

TEST(CredentialsTest, ATokenThatCannotStandInAHeaderIsRefused) {
  const TestFolder folder;
  FakeClock clock;
  for (const char* token : {"", " \n", "two words", "a\r\nX-Injected: b", "\x01"}) {
    Config config;
    config.token.file = folder.path() / "token";
    Write(config.token.file, token);
    const absl::Status status = Credentials(config, clock).Get({}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("token"));
  }
}

TEST(ExecCredentialTest, WhatAPluginPrintsIsRead) {
  const auto credential = ParseExecCredential(R"({"kind": "ExecCredential",
      "apiVersion": "client.authentication.k8s.io/v1", "spec": {},
      "status": {"token": "t", "clientCertificateData": "c", "clientKeyData": "k",
                 "expirationTimestamp": "2026-03-01T12:00:00Z"}})",
                                              kVersion);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "t");
  EXPECT_EQ(credential->certificate, "c");
  EXPECT_EQ(credential->key, "k");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*credential->expires), 1772366400);
}

TEST(ExecCredentialTest, TimesMayHaveFractionsAndOffsets) {
  for (const char* time : {"2026-03-01T12:00:00.999Z", "2026-03-01T14:30:00+02:30"}) {
    const auto credential = ParseExecCredential(
        R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
            "status": {"token": "t", "expirationTimestamp": ")" +
            std::string(time) + R"("}})",
        kVersion);
    ASSERT_TRUE(credential.ok()) << credential.status();
    EXPECT_EQ(std::chrono::system_clock::to_time_t(*credential->expires), 1772366400) << time;
  }
}

TEST(ExecCredentialTest, WhatCannotBeUsedIsRefusedByField) {
  const auto error = [](const std::string& status, const std::string& version = kVersion) {
    const auto credential = ParseExecCredential(R"({"kind": "ExecCredential", "apiVersion": ")" +
                                                    version + R"(", "status": )" + status + "}",
                                                kVersion);
    EXPECT_TRUE(absl::IsFailedPrecondition(credential.status())) << status;
    return std::string(credential.status().message());
  };
  EXPECT_THAT(error("3"), HasSubstr("status is missing"));
  EXPECT_THAT(error("{}"), HasSubstr("neither a token nor a certificate"));
  EXPECT_THAT(error(R"({"token": 3})"), HasSubstr("status.token is not a text"));
  EXPECT_THAT(error(R"({"token": "a b"})"), HasSubstr("status.token holds"));
  EXPECT_THAT(error(R"({"clientKeyData": "k"})"), HasSubstr("only one of"));
  EXPECT_THAT(error(R"({"token": "t", "expirationTimestamp": "soon"})"),
              HasSubstr("status.expirationTimestamp: soon"));
  EXPECT_THAT(error(R"({"token": "t"})", "client.authentication.k8s.io/v1beta1"),
              HasSubstr("client.authentication.k8s.io/v1"));
  EXPECT_THAT(std::string(ParseExecCredential("Please log in", kVersion).status().message()),
              HasSubstr("did not print a JSON object"));
}

/// A plugin written in shell; it counts its runs in a file.
class Plugin {
 public:
  explicit Plugin(const std::string& body) {
    const std::filesystem::path script = folder_.path() / "plugin";
    Write(script, "#!/bin/sh\necho run >> " + runs_.string() + "\n" + body);
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    config.exec = {.command = script,
                   .environment = {{"PROFILE", "training"}},
                   .api_version = kVersion,
                   .install_hint = "install it"};
  }

  /// Shell that prints `status` ("\"token\": \"t\"").
  static std::string Print(const std::string& status) {
    return "echo '{\"kind\": \"ExecCredential\", \"apiVersion\": \"" + std::string(kVersion) +
           "\", \"status\": {" + status + "}}'\n";
  }

  int Runs() const {
    std::ifstream file(runs_);
    return static_cast<int>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }

  Config config;

 private:
  const TestFolder folder_;
  const std::filesystem::path runs_ = folder_.path() / "runs";
};

TEST(ExecCredentialsTest, ThePluginRunsOnceUntilItsCredentialExpires) {
  FakeClock clock;  // starts an hour after the epoch
  const Plugin plugin(
      Plugin::Print(R"("token": "t", "expirationTimestamp": "1970-01-01T02:00:00Z")"));
  Credentials credentials(plugin.config, clock);
  EXPECT_EQ(TokenOf(credentials.Get({})), "t");
  clock.Advance(std::chrono::minutes(59));
  EXPECT_EQ(TokenOf(credentials.Get({})), "t");
  EXPECT_EQ(plugin.Runs(), 1);
  clock.Advance(std::chrono::minutes(1));
  EXPECT_EQ(TokenOf(credentials.Get({})), "t");
  EXPECT_EQ(plugin.Runs(), 2);
}

TEST(ExecCredentialsTest, ACredentialThatNeverExpiresIsAskedForOnce) {
  const FakeClock clock;
  const Plugin plugin(
      Plugin::Print(R"("token": "t", "expirationTimestamp": "9999-12-31T23:59:59Z")"));
  Credentials credentials(plugin.config, clock);
  EXPECT_EQ(TokenOf(credentials.Get({})), "t");
  EXPECT_EQ(TokenOf(credentials.Get({})), "t");
  EXPECT_EQ(plugin.Runs(), 1);
}

TEST(ExecCredentialsTest, AfterA401ThePluginRunsAgainButOnlyForWhatWasRefused) {
  FakeClock clock;
  const Plugin plugin(
      "echo \"{\\\"kind\\\": \\\"ExecCredential\\\", \\\"apiVersion\\\": "
      "\\\"client.authentication.k8s.io/v1\\\", \\\"status\\\": {\\\"token\\\": "
      "\\\"t$(wc -l < $(dirname $0)/runs)\\\"}}\"\n");
  Credentials credentials(plugin.config, clock);
  const auto first = credentials.Get({});
  EXPECT_EQ(TokenOf(first), "t1");
  EXPECT_EQ(TokenOf(credentials.GetAfter(**first, {})), "t2");
  EXPECT_EQ(TokenOf(credentials.GetAfter(**first, {})), "t2");  // another thread was faster
  EXPECT_EQ(plugin.Runs(), 2);
}

TEST(ExecCredentialsTest, ManyThreadsWaitForOneRun) {
  FakeClock clock;
  const Plugin plugin("sleep 0.2\n" + Plugin::Print(R"("token": "t")"));
  Credentials credentials(plugin.config, clock);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(TokenOf(credentials.Get({})), "t"); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(plugin.Runs(), 1);
}

TEST(ExecCredentialsTest, ThePluginIsToldOfTheCluster) {
  FakeClock clock;
  Plugin plugin(
      "if [ \"$PROFILE\" = training ] && echo \"$KUBERNETES_EXEC_INFO\" | grep -q "
      "'\"server\":\"https://kube:6443\"'; then\n" +
      Plugin::Print(R"("token": "told")") + "fi\n");
  plugin.config.server = {.tls = true, .host = "kube", .port = 6443, .path = ""};
  plugin.config.exec->provide_cluster_info = true;
  EXPECT_EQ(TokenOf(Credentials(plugin.config, clock).Get({})), "told");
  plugin.config.exec->cluster_config = R"({"audience":"a"})";
  plugin.config.tls_server_name = "name";
  EXPECT_EQ(ExecInfo(plugin.config, "pem"),
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":)"
            R"({"cluster":{"certificate-authority-data":"cGVt","config":{"audience":"a"},)"
            R"("server":"https://kube:6443","tls-server-name":"name"},"interactive":false}})");
}

TEST(ExecCredentialsTest, ItsCertificateIsUsed) {
  FakeClock clock;
  const Plugin plugin(Plugin::Print(R"("clientCertificateData": "c", "clientKeyData": "k")"));
  const auto credential = Credentials(plugin.config, clock).Get({});
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ((*credential)->tls, (TlsMaterial{.authorities = "", .certificate = "c", .key = "k"}));
}

TEST(ExecCredentialsTest, AFailureSaysWhatThePluginSaidAndIsNotRepeatedAtOnce) {
  FakeClock clock;
  const Plugin plugin("echo 'your session has expired' >&2\nexit 3\n");
  Credentials credentials(plugin.config, clock);
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = credentials.Get({}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ended with code 3"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("your session has expired"));
  }
  EXPECT_EQ(plugin.Runs(), 1);
  clock.Advance(seconds(1));
  EXPECT_FALSE(credentials.Get({}).ok());
  EXPECT_EQ(plugin.Runs(), 2);
}

TEST(ExecCredentialsTest, APluginThatIsNotThereIsNamedWithItsHint) {
  FakeClock clock;
  Plugin plugin("");
  plugin.config.exec->command = "no-such-credential-plugin";
  const absl::Status status = Credentials(plugin.config, clock).Get({}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-credential-plugin"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("install it"));
}

TEST(ExecCredentialsTest, WaitingForAPluginEndsWhenCancelled) {
  FakeClock clock;
  const Plugin plugin("sleep 60\n");
  Credentials credentials(plugin.config, clock);
  const Cancellation cancellation;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back(
        [&] { EXPECT_TRUE(absl::IsCancelled(credentials.Get(cancellation).status())); });
  }
  while (plugin.Runs() == 0) {
    std::this_thread::yield();
  }
  cancellation.Cancel();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace adamant::kube
