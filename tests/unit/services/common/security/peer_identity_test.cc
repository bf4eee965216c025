#include "services/common/security/peer_identity.h"

#include <gtest/gtest.h>

#include "tests/unit/services/common/security/identities.h"

namespace adamant::security {
namespace {

constexpr char kUri[] =
    "spiffe://adamant.local/ns/team-a/job/8f14e45f-ceea-467f-a0e6-3c2a1b9d7e01/worker/3/12";

TEST(PeerIdentityTest, IsWrittenAsASpiffeId) {
  EXPECT_EQ(FormatIdentity(kWorker), kUri);
  EXPECT_EQ(FormatIdentity(kOperator), "spiffe://adamant.local/ns/adamant-system/operator");
}

TEST(PeerIdentityTest, EachRoleIsReadAsItIsWritten) {
  for (const Role role : kRoles) {
    PeerIdentity identity = role == Role::kOperator ? kOperator : kWorker;
    identity.role = role;
    identity.slot = role == Role::kOperator || role == Role::kExporter ? 0 : identity.slot;
    const auto read = ParseIdentity(FormatIdentity(identity));
    ASSERT_TRUE(read.ok()) << FormatIdentity(identity);
    EXPECT_EQ(*read, identity);
    EXPECT_EQ(RoleNamed(RoleName(role)), role);
  }
}

TEST(PeerIdentityTest, LargestNumbersAreRead) {
  PeerIdentity identity = kWorker;
  identity.slot = UINT32_MAX;
  identity.generation = UINT64_MAX;
  EXPECT_EQ(ParseIdentity(FormatIdentity(identity)).value(), identity);
}

TEST(PeerIdentityTest, OtherSpellingsAndOtherUrisAreRefused) {
  const std::string good = kUri;
  for (const std::string& bad : {
           std::string(),
           std::string("spiffe://"),
           "http" + good.substr(6),
           "SPIFFE" + good.substr(6),
           good + "/",
           good + "/1",
           good + "?a",
           good + " ",
           good + std::string(1, '\0'),
           std::string("spiffe://adamant.local/ns/team-a/job/u/worker/03/12"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/worker/3/+12"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/worker/-3/12"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/worker/4294967296/12"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/worker/3/18446744073709551616"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/worker/3/"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/Worker/3/12"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/operator/3/12"),
           std::string("spiffe://adamant.local/ns/team-a/job/u/exporter/3/12"),
           std::string("spiffe://adamant.local/ns/team-a/worker"),
           std::string("spiffe://adamant.local/ns//job/u/worker/3/12"),
           std::string("spiffe://adamant.local/ns/team-a/job//worker/3/12"),
           std::string("spiffe://adamant.local/ns/team-a/run/u/worker/3/12"),
           std::string("spiffe://adamant.local/sa/team-a/job/u/worker/3/12"),
           std::string("spiffe://adamant.local/ns/team%2da/job/u/worker/3/12"),
           std::string("spiffe://adamant.local/ns/../job/u/worker/3/12"),
           std::string("spiffe://Adamant.local/ns/team-a/job/u/worker/3/12"),
           std::string("spiffe://adamant.local:1/ns/team-a/job/u/worker/3/12"),
           std::string("spiffe://adamant..local/ns/team-a/job/u/worker/3/12"),
           std::string("spiffe:///ns/team-a/job/u/worker/3/12"),
       }) {
    EXPECT_FALSE(ParseIdentity(bad).ok()) << bad;
  }
}

TEST(PeerIdentityTest, TextsThatAreTooLongAreRefused) {
  const std::string domain(kMostIdentityBytes, 'a');
  EXPECT_FALSE(ParseIdentity("spiffe://" + domain + "/ns/a/operator").ok());
  PeerIdentity identity = kWorker;
  identity.name_space = std::string(64, 'a');
  EXPECT_FALSE(ParseIdentity(FormatIdentity(identity)).ok());
}

TEST(PeerIdentityTest, CheckNamesTheField) {
  EXPECT_TRUE(CheckIdentity(kWorker).ok());
  PeerIdentity identity = kWorker;
  identity.name_space = "Team";
  EXPECT_EQ(CheckIdentity(identity).message(), "identity: not a namespace");
  identity = kWorker;
  identity.trust_domain = "a/b";
  EXPECT_EQ(CheckIdentity(identity).message(), "identity: not a trust domain");
  identity = kWorker;
  identity.job_uid = "a/worker";
  EXPECT_EQ(CheckIdentity(identity).message(), "identity: not the UID of a job");
  identity = kOperator;
  identity.generation = 1;
  EXPECT_FALSE(CheckIdentity(identity).ok());
}

}  // namespace
}  // namespace adamant::security
