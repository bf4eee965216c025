#include "services/common/security/authorisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/unit/services/common/security/identities.h"

namespace adamant::security {
namespace {

const std::filesystem::path kRoot = ADAMANT_SOURCE_DIR;

std::string TextOfFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> Matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

// The methods of a .proto file: those of its services, and those of frames, which comments name.
std::vector<std::string> MethodsOf(const std::string& proto) {
  std::vector<std::string> methods = Matches(proto, "\"(/adamant\\.v1\\.[A-Za-z]+/[A-Za-z]+)\"");
  std::istringstream lines(proto);
  std::string service;
  for (std::string line; std::getline(lines, line);) {
    if (const auto named = Matches(line, "^service ([A-Za-z]+) "); !named.empty()) {
      service = named[0];
    }
    for (const std::string& method : Matches(line, "^ *rpc ([A-Za-z]+)\\(")) {
      methods.push_back("/adamant.v1." + service + '/' + method);
    }
  }
  return methods;
}

PeerIdentity As(Role role) {
  PeerIdentity identity = role == Role::kOperator ? kOperator : kWorker;
  identity.role = role;
  identity.slot = 0;
  return identity;
}

std::vector<Role> RolesOf(const std::string& method) {
  std::vector<Role> roles;
  std::ranges::copy_if(
      kRoles, std::back_inserter(roles), [&](Role role) { return IsAllowed(method, role); });
  return roles;
}

TEST(AuthorisationTest, EveryMethodOfTheProtocolHasARuleAndNoOther) {
  std::set<std::string> methods = {"/grpc.health.v1.Health/Check"};
  for (const auto& file : std::filesystem::directory_iterator(kRoot / "proto/adamant/v1")) {
    for (const std::string& method : MethodsOf(TextOfFile(file.path()))) {
      methods.insert(method);
    }
  }
  methods.erase("/adamant.v1.Certificates/Issue");  // of callers who have no certificate yet
  std::vector<std::string> rules;
  for (const MethodRule& rule : MethodRules()) {
    rules.emplace_back(rule.method);
    EXPECT_FALSE(rule.roles.empty()) << rule.method;
  }
  EXPECT_THAT(rules, testing::ElementsAreArray(methods));
}

TEST(AuthorisationTest, ThePageHasTheTable) {
  EXPECT_NE(TextOfFile(kRoot / "docs/security.md").find('\n' + FormatRules()), std::string::npos)
      << "docs/security.md should have:\n"
      << FormatRules();
}

TEST(AuthorisationTest, EachMethodIsForItsRoles) {
  using testing::ElementsAre;
  EXPECT_THAT(RolesOf("/adamant.v1.Controller/Attend"),
              ElementsAre(Role::kParameterServer, Role::kDataServer, Role::kWorker));
  EXPECT_THAT(RolesOf("/adamant.v1.Controller/GetStatus"), ElementsAre(Role::kOperator));
  EXPECT_THAT(RolesOf("/adamant.v1.DataServer/Work"), ElementsAre(Role::kWorker));
  EXPECT_THAT(RolesOf("/adamant.v1.ParameterServer/Exchange"),
              ElementsAre(Role::kWorker, Role::kExporter));
  EXPECT_THAT(RolesOf("/adamant.v1.ParameterServer/PutRecord"), ElementsAre(Role::kDataServer));
  EXPECT_THAT(RolesOf("/adamant.v1.Replication/Deliver"), ElementsAre(Role::kParameterServer));
  EXPECT_EQ(RolesOf("/grpc.health.v1.Health/Check").size(), std::size(kRoles));
}

TEST(AuthorisationTest, OtherMethodsAreForNobody) {
  for (const char* const method : {"",
                                   "/",
                                   "/adamant.v1.Controller/Stop",
                                   "/adamant.v1.Controller/attend",
                                   "/adamant.v1.Controller/Attend/",
                                   "/grpc.health.v1.Health/Watch",
                                   "/grpc.reflection.v1alpha.ServerReflection/X"}) {
    EXPECT_TRUE(RolesOf(method).empty()) << method;
  }
}

TEST(AuthorisationTest, AtAJobsProcessOnlyItsOwnJobMayCall) {
  constexpr char kWork[] = "/adamant.v1.DataServer/Work";
  const PeerIdentity server = As(Role::kDataServer);
  EXPECT_TRUE(Authorise(kWork, kWorker, server).ok());
  PeerIdentity caller = kWorker;
  caller.job_uid = "another";
  EXPECT_EQ(Authorise(kWork, caller, server).code(), absl::StatusCode::kPermissionDenied);
  caller = kWorker;
  caller.name_space = "team-b";
  EXPECT_FALSE(Authorise(kWork, caller, server).ok());
  caller = kWorker;
  caller.trust_domain = "other.local";
  EXPECT_FALSE(Authorise(kWork, caller, server).ok());
  EXPECT_FALSE(Authorise(kWork, server, server).ok());
}

TEST(AuthorisationTest, ToAnOperatorProcessesOfAllJobsMayCome) {
  EXPECT_TRUE(Authorise("/adamant.v1.Controller/Attend", kWorker, kOperator).ok());
  PeerIdentity caller = kWorker;
  caller.trust_domain = "other.local";
  EXPECT_FALSE(Authorise("/adamant.v1.Controller/Attend", caller, kOperator).ok());
  EXPECT_FALSE(Authorise("/adamant.v1.Controller/GetStatus", kWorker, kOperator).ok());
}

TEST(AuthorisationTest, ARefusalNamesTheMethodAndWhoAsked) {
  EXPECT_EQ(Authorise("/adamant.v1.Controller/GetStatus", kWorker, kOperator).message(),
            "/adamant.v1.Controller/GetStatus: " + FormatIdentity(kWorker) + " may not call it");
}

TEST(AuthorisationTest, WhoHasACertificateSpeaksForItsOwnSlot) {
  EXPECT_TRUE(CheckNamedSlot(&kWorker, kWorker.slot).ok());
  EXPECT_TRUE(CheckNamedSlot(nullptr, 1).ok());
  const absl::Status refused = CheckNamedSlot(&kWorker, kWorker.slot + 1);
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(testing::HasSubstr(FormatIdentity(kWorker)),
                             testing::HasSubstr(std::to_string(kWorker.slot + 1))));
}

}  // namespace
}  // namespace adamant::security
