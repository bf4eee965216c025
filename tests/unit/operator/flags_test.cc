#include "operator/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace adamant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::variant<OperatorFlags, int> Parse(std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"adamant-operator",
                                    "--namespace=adamant-system",
                                    "--control-service=adamant-operator.adamant-system.svc:7070",
                                    "--image=registry.example/adamant:1"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  return ParseOperatorFlags(static_cast<int>(argv.size()), argv.data());
}

kube::OperatorOptions OptionsOf(const std::vector<std::string>& more) {
  const auto parsed = Parse(more);
  EXPECT_TRUE(std::holds_alternative<OperatorFlags>(parsed));
  const auto* flags = std::get_if<OperatorFlags>(&parsed);
  return flags != nullptr ? flags->options : kube::OperatorOptions();
}

// What is told of a wrong flag, on standard error.
std::string Refusal(const std::string& flag) {
  testing::internal::CaptureStderr();
  const auto parsed = Parse({flag});
  const std::string told = testing::internal::GetCapturedStderr();
  const int* const exit_code = std::get_if<int>(&parsed);
  EXPECT_TRUE(exit_code != nullptr && *exit_code == 2) << flag;
  return told;
}

TEST(OperatorFlagsTest, RequiredFlagsAreEnough) {
  const auto parsed = Parse();
  ASSERT_TRUE(std::holds_alternative<OperatorFlags>(parsed));
  const auto& flags = std::get<OperatorFlags>(parsed);
  EXPECT_EQ(flags.options.name_space, "adamant-system");
  EXPECT_EQ(flags.options.pods.image.name, "registry.example/adamant:1");
  EXPECT_EQ(flags.options.pods.control_service, "adamant-operator.adamant-system.svc:7070");
  EXPECT_FALSE(flags.options.identity.empty()) << "the host's name";
  EXPECT_THAT(flags.options.namespaces, IsEmpty());
}

TEST(OperatorFlagsTest, JobsDoWithoutTlsUnlessItIsOn) {
  EXPECT_FALSE(OptionsOf({}).security.has_value());
  EXPECT_FALSE(OptionsOf({"--certificate-life=1h"}).security.has_value());
  const auto security = OptionsOf({"--tls=on"}).security;
  ASSERT_TRUE(security.has_value());
  EXPECT_EQ(security->trust_domain, "adamant.local");
  EXPECT_EQ(security->secret, "adamant-ca");
  EXPECT_EQ(security->issuer_secret, "");
  EXPECT_EQ(security->certificate_life, std::chrono::hours(24));
  EXPECT_EQ(security->control_listen, "[::]:7072");
  EXPECT_EQ(security->control_service, "adamant-operator.adamant-system.svc:7072");
  EXPECT_EQ(security->certificates_listen, "[::]:7071");
  EXPECT_EQ(security->certificates_service, "adamant-operator.adamant-system.svc:7071");
}

TEST(OperatorFlagsTest, TlsIsAsTheFlagsSay) {
  const auto security = OptionsOf({"--tls=on",
                                   "--control-listen=127.0.0.1:1",
                                   "--certificate-port=2",
                                   "--tls-control-port=3",
                                   "--certificate-life=90s",
                                   "--trust-domain=ml.example",
                                   "--ca-secret=ours",
                                   "--issuer-secret=given"})
                            .security;
  ASSERT_TRUE(security.has_value());
  EXPECT_EQ(security->trust_domain, "ml.example");
  EXPECT_EQ(security->secret, "ours");
  EXPECT_EQ(security->issuer_secret, "given");
  EXPECT_EQ(security->certificate_life, std::chrono::seconds(90));
  EXPECT_EQ(security->certificates_listen, "127.0.0.1:2");
  EXPECT_EQ(security->certificates_service, "adamant-operator.adamant-system.svc:2");
  EXPECT_EQ(security->control_listen, "127.0.0.1:3");
  EXPECT_EQ(security->control_service, "adamant-operator.adamant-system.svc:3");
}

TEST(OperatorFlagsTest, FlagsOfTlsThatCannotBeMeantAreRefusedByName) {
  EXPECT_THAT(Refusal("--tls=maybe"), HasSubstr("--tls"));
  EXPECT_THAT(Refusal("--certificate-life=59s"), HasSubstr("--certificate-life"));
  EXPECT_THAT(Refusal("--certificate-life=soon"), HasSubstr("--certificate-life"));
  EXPECT_THAT(Refusal("--trust-domain=Ours/theirs"), HasSubstr("--trust-domain"));
  EXPECT_THAT(Refusal("--issuer-secret=Not_one"), HasSubstr("--issuer-secret"));
  EXPECT_THAT(Refusal("--certificate-port=0"), HasSubstr("--certificate-port"));
}

TEST(OperatorFlagsTest, ItListensAtIpv6AndIpv4) {
  const auto parsed = Parse();
  ASSERT_TRUE(std::holds_alternative<OperatorFlags>(parsed));
  const auto& flags = std::get<OperatorFlags>(parsed);
  EXPECT_EQ(flags.options.control_listen, "[::]:7070");
  EXPECT_EQ(flags.metrics_listen, "[::]:8080");
  EXPECT_EQ(flags.probes_listen, "[::]:8081");
}

TEST(OperatorFlagsTest, JobsGetNetworkPoliciesWhereThatIsAskedFor) {
  EXPECT_FALSE(OptionsOf({}).pods.network.has_value());
  const auto network =
      OptionsOf({"--network-policies", "--metrics-namespaces=a,b", "--dns-ports=53,1053"})
          .pods.network.value_or(kube::NetworkSettings());
  EXPECT_EQ(network.operators_namespace, "adamant-system");
  EXPECT_THAT(network.operators_ports, ElementsAre(7070, 7071, 7072));
  EXPECT_THAT(network.metrics_namespaces, ElementsAre("a", "b"));
  EXPECT_THAT(network.dns_ports, ElementsAre(53, 1053));
  EXPECT_THAT(OptionsOf({"--network-policies"}).pods.network->dns_ports, ElementsAre(53, 5353));
  EXPECT_THAT(Refusal("--metrics-namespaces=a"), HasSubstr("--network-policies"));
}

TEST(OperatorFlagsTest, MissingFlagsAreRefused) {
  std::string program = "adamant-operator";
  char* argv[] = {program.data()};
  const auto parsed = ParseOperatorFlags(1, argv);
  ASSERT_TRUE(std::holds_alternative<int>(parsed));
  EXPECT_EQ(std::get<int>(parsed), 2);
}

TEST(OperatorFlagsTest, NamespacesAreSeparatedByCommasAndCountOnce) {
  EXPECT_THAT(OptionsOf({"--watch-namespaces=team-b,team-a,team-b"}).namespaces,
              ElementsAre("team-a", "team-b"));
  EXPECT_THAT(OptionsOf({"--watch-namespaces", "1"}).namespaces, ElementsAre("1"));
  EXPECT_THAT(OptionsOf({"--watch-namespaces", ""}).namespaces, IsEmpty());
}

TEST(OperatorFlagsTest, WhatCannotBeANamespaceIsRefusedByTheFlagsName) {
  const std::string longest(63, 'a');
  EXPECT_THAT(OptionsOf({"--watch-namespaces=" + longest}).namespaces, ElementsAre(longest));
  for (const std::string& wrong : {std::string("Team"),
                                   std::string("a.b"),
                                   std::string("-a"),
                                   std::string("a-"),
                                   std::string("a b"),
                                   std::string("a/b"),
                                   std::string("\xc3\xa4"),
                                   longest + "a"}) {
    const std::string told = Refusal("--watch-namespaces=team-a," + wrong);
    EXPECT_THAT(told, HasSubstr("--watch-namespaces"));
    EXPECT_THAT(told, HasSubstr("\"" + wrong + "\" is not the name of a namespace"));
  }
  for (const char* wrong : {",", "a,", ",a", "a,,b"}) {
    EXPECT_THAT(Refusal(std::string("--watch-namespaces=") + wrong),
                HasSubstr("\"\" is not the name of a namespace"));
  }
}

TEST(OperatorFlagsTest, HowNodesFetchTheImageIsGivenToItsPods) {
  const kube::PodImage plain = OptionsOf({}).pods.image;
  EXPECT_EQ(plain.pull_policy, "");
  EXPECT_THAT(plain.pull_secrets, IsEmpty());
  const kube::PodImage image =
      OptionsOf({"--image-pull-policy=Always", "--image-pull-secrets=registry,team.b"}).pods.image;
  EXPECT_EQ(image.pull_policy, "Always");
  EXPECT_THAT(image.pull_secrets, ElementsAre("registry", "team.b"));
}

TEST(OperatorFlagsTest, AnUnknownPullPolicyIsRefusedByTheFlagsName) {
  EXPECT_THAT(Refusal("--image-pull-policy=Sometimes"), HasSubstr("--image-pull-policy"));
}

TEST(OperatorFlagsTest, WhatCannotBeASecretIsRefusedByTheFlagsName) {
  const std::string label(63, 'a');
  const std::string longest = label + '.' + label + '.' + label + '.' + std::string(61, 'a');
  EXPECT_THAT(OptionsOf({"--image-pull-secrets=" + longest}).pods.image.pull_secrets,
              ElementsAre(longest));
  for (const std::string& wrong : {std::string("Registry"),
                                   std::string("a..b"),
                                   std::string("a."),
                                   std::string("a_b"),
                                   longest + "a"}) {
    const std::string told = Refusal("--image-pull-secrets=registry," + wrong);
    EXPECT_THAT(told, HasSubstr("--image-pull-secrets"));
    EXPECT_THAT(told, HasSubstr("\"" + wrong + "\" is not the name of a secret"));
  }
}

}  // namespace
}  // namespace adamant
