#include "operator/kube_client/auth/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "operator/kube_client/auth/kubeconfig.h"
#include "operator/kube_client/base/base64.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::kube {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kCorpus = KUBECONFIGS_FOLDER;

Environment Variables(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Config Read(const std::string& name, const std::string& context = "") {
  const absl::StatusOr<Config> config = ReadKubeconfig({kCorpus / "good" / name}, context);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(Config{});
}

TEST(ConfigTest, AUrlIsReadInAllItsForms) {
  const std::map<std::string, std::string> urls = {
      {"https://10.0.0.1:6443", "https://10.0.0.1:6443"},
      {"https://kube.example", "https://kube.example:443"},
      {"kube.example:6443", "https://kube.example:6443"},
      {"http://127.0.0.1", "http://127.0.0.1:80"},
      {"https://[::1]:6443", "https://[::1]:6443"},
      {"https://[2001:db8::1]", "https://[2001:db8::1]:443"},
      {"https://rancher.example/k8s/clusters/c-1/", "https://rancher.example:443/k8s/clusters/c-1"},
  };
  for (const auto& [url, meant] : urls) {
    const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(url);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(endpoint->Url(), meant);
  }
  EXPECT_EQ(ParseEndpoint("https://[::1]:6443")->host, "::1");
}

TEST(ConfigTest, AUrlThatCannotBeMeantIsRefused) {
  for (const char* url : {"",
                          "https://",
                          "https://:6443",
                          "https://[::1",
                          "https://[::1]6443",
                          "https://[kube]:6443",
                          "https://::1",
                          "https://a b",
                          "https://user@kube.example",
                          "https://kube.example:",
                          "https://kube.example:0",
                          "https://kube.example:65536",
                          "https://kube.example:64x",
                          "https://kube.example/?a=b",
                          "wss://kube.example"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint(url).status())) << url;
  }
}

TEST(ConfigTest, AKubeconfigWithDataIsRead) {
  const Config config = Read("full.yaml");
  EXPECT_EQ(config.server.Url(), "https://[2001:db8::1]:6443/clusters/east");
  EXPECT_EQ(config.tls_server_name, "kube.east.example");
  EXPECT_EQ(config.authorities.text, "east authority");
  EXPECT_EQ(config.certificate.text, "operator certificate");
  EXPECT_EQ(config.key.text, "operator key");
  EXPECT_EQ(config.default_namespace, "training");
  EXPECT_TRUE(config.token.empty());
  EXPECT_FALSE(config.exec.has_value());
  EXPECT_THAT(config.source, HasSubstr("context \"east\" of "));
  EXPECT_THAT(config.source, HasSubstr("full.yaml"));
}

TEST(ConfigTest, AnotherContextCanBeChosenAndPathsAreRelativeToTheFile) {
  const Config config = Read("full.yaml", "west");
  EXPECT_EQ(config.server.Url(), "https://west.example:443");
  EXPECT_EQ(config.authorities.file, kCorpus / "good/pki/west.crt");
  EXPECT_EQ(config.token.file, "/var/run/visitor/token");  // goes before the token in the file
  EXPECT_EQ(config.default_namespace, "default");
}

TEST(ConfigTest, AContextWithoutAUserIsAnonymous) {
  const Config config = Read("full.yaml", "nobody");
  EXPECT_TRUE(config.token.empty() && config.certificate.empty() && !config.exec);
}

TEST(ConfigTest, AnExecPluginIsRead) {
  const Config config = Read("exec.yaml");
  ASSERT_TRUE(config.exec.has_value());
  EXPECT_EQ(config.exec->command, kCorpus / "good/bin/get-token");
  EXPECT_THAT(config.exec->arguments, testing::ElementsAre("--cluster", "cloud"));
  EXPECT_THAT(config.exec->environment, testing::ElementsAre(testing::Pair("PROFILE", "training")));
  EXPECT_EQ(config.exec->api_version, "client.authentication.k8s.io/v1beta1");
  EXPECT_EQ(config.exec->install_hint, "get-token comes with the cloud's tools");
  EXPECT_TRUE(config.exec->provide_cluster_info);
  EXPECT_EQ(config.exec->cluster_config,
            R"({"audience":"06da","none":null,"port":443,"scopes":["a","b"],"strict":true})");
  EXPECT_EQ(config.authorities.file, kCorpus / "ca.crt");
}

TEST(ConfigTest, AKubeconfigMayBeJson) {
  EXPECT_EQ(Read("json.yaml").server.Url(), "http://127.0.0.1:8001");
}

TEST(ConfigTest, OfSeveralFilesTheFirstThatHasAnEntryWins) {
  const absl::StatusOr<Config> config = ReadKubeconfig(
      {kCorpus / "missing.yaml", kCorpus / "good/first.yaml", kCorpus / "good/second.yaml"}, "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.host, "first.example");
  EXPECT_EQ(config->tls_server_name, "");  // an entry wins as a whole
  EXPECT_EQ(config->token.text, "second");
}

TEST(ConfigTest, EveryBrokenKubeconfigIsRefusedWithFileFieldAndAdvice) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus / "bad")) {
    std::ifstream file(entry.path());
    std::string expected;
    std::getline(file, expected);
    ASSERT_TRUE(expected.starts_with("# expect: ")) << entry.path();
    const absl::Status status = ReadKubeconfig({entry.path()}, "").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << entry.path() << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected.substr(10)));
    EXPECT_THAT(std::string(status.message()), HasSubstr(entry.path().string()));
    ++files;
  }
  EXPECT_GE(files, 30);
}

TEST(ConfigTest, AliasesThatMultiplyDoNotFillTheMemory) {
  const TestFolder folder;
  std::ofstream file(folder.path() / "config");
  file << "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
          "x0: &x0 [a, b]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string last = std::to_string(i - 1);
    file << "x" << i << ": &x" << i << " [*x" << last << ", *x" << last << "]\n";
  }
  file << "clusters: [{name: c, cluster: {server: \"https://c\", extensions: [{name: "
          "client.authentication.k8s.io/exec, extension: *x39}]}}]\n"
          "users: [{name: u, user: {exec: {command: p, apiVersion: "
          "client.authentication.k8s.io/v1}}}]\n";
  file.close();
  const absl::StatusOr<Config> config = ReadKubeconfig({folder.path() / "config"}, "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_LT(config->exec->cluster_config.size(), 1'000'000U);
}

TEST(ConfigTest, InAPodTheServiceAccountIsUsed) {
  const TestFolder folder;
  std::ofstream(folder.path() / "token") << "t";
  std::ofstream(folder.path() / "ca.crt") << "c";
  std::ofstream(folder.path() / "namespace") << "training\n";
  for (const char* host : {"fd00::1", "[fd00::1]"}) {
    const absl::StatusOr<Config> config = InClusterConfig(
        Variables({{"KUBERNETES_SERVICE_HOST", host}, {"KUBERNETES_SERVICE_PORT", "6443"}}),
        folder.path());
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->server.Url(), "https://[fd00::1]:6443");
    EXPECT_EQ(config->token.file, folder.path() / "token");
    EXPECT_EQ(config->authorities.file, folder.path() / "ca.crt");
    EXPECT_EQ(config->default_namespace, "training");
  }
}

TEST(ConfigTest, InAPodWithoutATokenItIsSaidWhatIsMissing) {
  const TestFolder folder;
  const Environment environment =
      Variables({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  const absl::Status status = InClusterConfig(environment, folder.path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("automountServiceAccountToken"));
  EXPECT_TRUE(absl::IsFailedPrecondition(InClusterConfig(Variables({})).status()));
}

TEST(ConfigTest, TheFlagGoesBeforeTheEnvironmentAndThatBeforeTheHome) {
  const TestFolder home;
  std::filesystem::create_directory(home.path() / ".kube");
  std::filesystem::copy(kCorpus / "good/json.yaml", home.path() / ".kube/config");
  const std::string listed =
      ":" + (kCorpus / "good/first.yaml").string() + ":" + (kCorpus / "good/second.yaml").string();
  const auto host = [&](const ConfigFlags& flags, const std::string& kubeconfig) {
    const absl::StatusOr<Config> config =
        LoadConfig(flags, Variables({{"HOME", home.path()}, {"KUBECONFIG", kubeconfig}}));
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->server.host : "";
  };
  EXPECT_EQ(host({.kubeconfig = kCorpus / "good/full.yaml", .context = "west"}, listed),
            "west.example");
  EXPECT_EQ(host({}, listed), "first.example");
  EXPECT_EQ(host({}, ""), "127.0.0.1");
}

TEST(ConfigTest, FilesThatAreNamedMustExist) {
  const absl::Status flag =
      LoadConfig({.kubeconfig = "/nonexistent/config", .context = ""}, Variables({})).status();
  EXPECT_TRUE(absl::IsNotFound(flag)) << flag;
  EXPECT_THAT(std::string(flag.message()), HasSubstr("/nonexistent/config"));
  const absl::Status listed = LoadConfig({}, Variables({{"KUBECONFIG", "/no/a:/no/b"}})).status();
  EXPECT_TRUE(absl::IsNotFound(listed)) << listed;
}

TEST(ConfigTest, WithoutAnyConfigurationItIsSaidHowToGiveOne) {
  const absl::Status status = LoadConfig({}, Variables({{"HOME", "/nonexistent"}})).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--kubeconfig"));
}

TEST(Base64Test, BytesOfAllLengthsComeBack) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    const std::string text = EncodeBase64(bytes);
    EXPECT_EQ(text.size(), (bytes.size() + 2) / 3 * 4);
    EXPECT_EQ(DecodeBase64(text).value(), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(EncodeBase64("light work."), "bGlnaHQgd29yay4=");
  EXPECT_EQ(DecodeBase64(" bGlna\nHQgd29yay4=\n").value(), "light work.");
}

TEST(Base64Test, WhatIsNotBase64IsRefused) {
  for (const char* text : {"a", "ab", "abc", "a===", "=", "ab=c", "abcd=", "ab==cd==", "a*cd"}) {
    EXPECT_FALSE(DecodeBase64(text).ok()) << text;
  }
}

}  // namespace
}  // namespace adamant::kube
