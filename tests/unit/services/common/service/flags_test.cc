#include "services/common/service/flags.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/services/common/security/certified.h"

namespace adamant::service {
namespace {

std::variant<ParsedFlags, int> Parse(std::vector<std::string> words,
                                     std::string_view role = "worker") {
  words.insert(words.begin(), "adamant-" + std::string(role));
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  return ParseFlags(static_cast<int>(argv.size()), argv.data(), role);
}

const std::vector<std::string> kRequired = {
    "--controller", "127.0.0.1:7000", "--slot", "2", "--data-dir", "/tmp/x"};

std::vector<std::string> With(std::vector<std::string> more) {
  more.insert(more.begin(), kRequired.begin(), kRequired.end());
  return more;
}

TEST(FlagsTest, TheControllerMayHaveSeveralAddresses) {
  const auto parse = [](const char* controller) {
    return Parse(
        {"--controller", controller, "--slot", "2", "--data-dir", "/tmp/x", "--job", "uid"});
  };
  const auto parsed = parse("a:1,[::1]:2");
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  EXPECT_EQ(std::get<ParsedFlags>(parsed).service.controller, "a:1,[::1]:2");
  EXPECT_EQ(std::get<ParsedFlags>(parsed).service.job, "uid");
  for (const char* wrong : {"a:1,", ",a:1", "a:1,b", ""}) {
    EXPECT_EQ(std::get<int>(parse(wrong)), 2) << wrong;
  }
}

TEST(FlagsTest, RequiredFlagsAreEnough) {
  const auto parsed = Parse(kRequired);
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  const auto& flags = std::get<ParsedFlags>(parsed);
  EXPECT_EQ(flags.service.controller, "127.0.0.1:7000");
  EXPECT_EQ(flags.service.slot, 2u);
  EXPECT_EQ(flags.service.data_dir, "/tmp/x");
  EXPECT_EQ(flags.service.generation, 0u);
  EXPECT_EQ(flags.service.listen, "127.0.0.1:0");
  EXPECT_EQ(flags.service.metrics_listen, "127.0.0.1:0");
  EXPECT_EQ(flags.log_level, LogLevel::kInfo);
  EXPECT_EQ(flags.parent_pid, 0);
}

TEST(FlagsTest, Ipv6AddressesGetTheirBrackets) {
  const auto parsed =
      Parse(With({"--listen", "fd00::5:7071", "--metrics-listen", "[::1]:0"}), "parameter-server");
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  EXPECT_EQ(std::get<ParsedFlags>(parsed).service.listen, "[fd00::5]:7071");
  EXPECT_EQ(std::get<ParsedFlags>(parsed).service.metrics_listen, "[::1]:0");
  EXPECT_EQ(std::get<ParsedFlags>(parsed).service.replication_listen, "127.0.0.1:0");
}

TEST(FlagsTest, AUnixSocketIsAnAddressButNotThatOfMetrics) {
  const auto parsed = Parse({"--controller",
                             "unix:/tmp/a/c",
                             "--slot",
                             "0",
                             "--data-dir",
                             "/tmp/x",
                             "--listen",
                             "unix:/tmp/a/p0.1",
                             "--replication-listen",
                             "unix:/tmp/a/r0.1"},
                            "parameter-server");
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  const auto& flags = std::get<ParsedFlags>(parsed).service;
  EXPECT_EQ(flags.controller, "unix:/tmp/a/c");
  EXPECT_EQ(flags.listen, "unix:/tmp/a/p0.1");
  EXPECT_EQ(flags.replication_listen, "unix:/tmp/a/r0.1");
  EXPECT_EQ(std::get<int>(Parse(With({"--metrics-listen", "unix:/tmp/a/m"}))), 2);
  EXPECT_EQ(std::get<int>(Parse(With({"--listen", "unix:a"}))), 2);
}

TEST(FlagsTest, AllFlagsAreRead) {
  const auto parsed = Parse(With({"--generation",
                                  "3",
                                  "--listen",
                                  "0.0.0.0:1",
                                  "--metrics-listen",
                                  "localhost:65535",
                                  "--log-level",
                                  "debug",
                                  "--parent-pid",
                                  "12"}));
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  const auto& flags = std::get<ParsedFlags>(parsed);
  EXPECT_EQ(flags.service.generation, 3u);
  EXPECT_EQ(flags.service.listen, "0.0.0.0:1");
  EXPECT_EQ(flags.service.metrics_listen, "localhost:65535");
  EXPECT_EQ(flags.log_level, LogLevel::kDebug);
  EXPECT_EQ(flags.parent_pid, 12);
}

TEST(FlagsTest, APodTellsItsUidByTheEnvironment) {
  ASSERT_EQ(setenv("ADAMANT_POD_UID", "uid-1", 1), 0);
  const auto parsed = Parse(With({}));
  unsetenv("ADAMANT_POD_UID");
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  EXPECT_EQ(std::get<ParsedFlags>(parsed).service.pod_uid, "uid-1");
  EXPECT_EQ(std::get<ParsedFlags>(Parse(With({}))).service.pod_uid, "");
}

TEST(FlagsTest, APodTellsTheCodeOfASignalledEndByTheEnvironment) {
  ASSERT_EQ(setenv("ADAMANT_SIGNALLED_EXIT_CODE", "143", 1), 0);
  const auto parsed = Parse(With({}));
  unsetenv("ADAMANT_SIGNALLED_EXIT_CODE");
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  EXPECT_EQ(std::get<ParsedFlags>(parsed).signalled_exit_code, 143);
  EXPECT_EQ(std::get<ParsedFlags>(Parse(With({}))).signalled_exit_code, 0);
}

TEST(FlagsTest, OnlyParameterServersListenForTheirPeers) {
  const auto more =
      With({"--replication-listen", "127.0.0.1:9", "--node", "machine-1", "--zone", "zone-a"});
  EXPECT_EQ(std::get<int>(Parse(more)), 2);
  const auto parsed = Parse(more, "parameter-server");
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  const ServiceFlags& flags = std::get<ParsedFlags>(parsed).service;
  EXPECT_EQ(flags.replication_listen, "127.0.0.1:9");
  EXPECT_EQ(flags.node, "machine-1");
  EXPECT_EQ(flags.zone, "zone-a");
}

// Sets ADAMANT_ROOTS while it lives.
class Roots {
 public:
  explicit Roots(const std::string& roots) { setenv("ADAMANT_ROOTS", roots.c_str(), 1); }
  ~Roots() { unsetenv("ADAMANT_ROOTS"); }
};

std::vector<std::string> WithTls() {
  return With({"--job",
               "uid",
               "--generation",
               "1",
               "--certificates",
               "a:7071,b:7071",
               "--tls-token",
               "/token",
               "--trust-domain",
               "adamant.local",
               "--namespace",
               "team-a"});
}

TEST(FlagsTest, TheFlagsOfTlsAreRead) {
  const std::string pem = security::MakeAuthority().roots();
  const Roots roots(pem);
  for (const char* role : {"worker", "data-server", "parameter-server"}) {
    const auto parsed = Parse(WithTls(), role);
    ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed)) << role;
    const TlsFlags& tls = std::get<ParsedFlags>(parsed).service.tls;
    EXPECT_EQ(tls.certificates, "a:7071,b:7071");
    EXPECT_EQ(tls.tls_token, "/token");
    EXPECT_EQ(tls.trust_domain, "adamant.local");
    EXPECT_EQ(tls.name_space, "team-a");
    EXPECT_EQ(tls.roots, pem);
  }
}

TEST(FlagsTest, WithoutTheFlagsOfTlsTheRootsAreNotLookedAt) {
  const Roots roots("no certificate");
  const auto parsed = Parse(kRequired);
  ASSERT_TRUE(std::holds_alternative<ParsedFlags>(parsed));
  EXPECT_EQ(std::get<ParsedFlags>(parsed).service.tls.certificates, "");
}

TEST(FlagsTest, TheFlagsOfTlsAreGivenAllOrNone) {
  const Roots roots(security::MakeAuthority().roots());
  const std::vector<std::string> all = WithTls();
  for (std::size_t i = kRequired.size(); i < all.size(); i += 2) {
    std::vector<std::string> flags = all;
    const auto flag = flags.begin() + static_cast<std::ptrdiff_t>(i);
    flags.erase(flag, flag + 2);
    testing::internal::CaptureStderr();
    const auto parsed = Parse(flags);
    const std::string message = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << all[i];
    EXPECT_EQ(std::get<int>(parsed), 2);
    EXPECT_NE(message.find(all[i]), std::string::npos) << message;
  }
}

TEST(FlagsTest, TlsNeedsRoots) {
  EXPECT_EQ(std::get<int>(Parse(WithTls())), 2);
  const Roots roots("no certificate");
  testing::internal::CaptureStderr();
  EXPECT_EQ(std::get<int>(Parse(WithTls())), 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ADAMANT_ROOTS"), std::string::npos);
}

TEST(FlagsTest, HelpIsNoError) { EXPECT_EQ(std::get<int>(Parse({"--help"})), 0); }

TEST(FlagsTest, BadFlagsAreExitCode2) {
  EXPECT_EQ(std::get<int>(Parse({})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--controller", "127.0.0.1:1", "--slot", "0"})), 2);
  for (const std::string address : {"", "host", "host:", ":80", "host:x", "host:65536", "h:-1"}) {
    EXPECT_EQ(std::get<int>(Parse(With({"--listen", address}))), 2) << address;
  }
  EXPECT_EQ(std::get<int>(Parse(With({"--log-level", "loud"}))), 2);
  EXPECT_EQ(std::get<int>(Parse(With({"--unknown"}))), 2);
  EXPECT_EQ(std::get<int>(Parse({"--controller", "a:1", "--data-dir", "x", "--slot", "-1"})), 2);
}

}  // namespace
}  // namespace adamant::service
