#include "services/common/security/expected_peer.h"

#include <gtest/gtest.h>

#include "tests/unit/services/common/security/identities.h"

namespace adamant::security {
namespace {

bool Is(const ExpectedPeer& expected, const PeerIdentity& peer) {
  return CheckPeer(expected, FormatIdentity(peer)).ok();
}

TEST(ExpectedPeerTest, AMemberIsOfTheSameJobAndOfThatRoleAndSlot) {
  PeerIdentity server = kWorker;
  server.role = Role::kDataServer;
  server.slot = 1;
  EXPECT_TRUE(Is(ExpectMember(kWorker, Role::kDataServer), server));
  EXPECT_TRUE(Is(ExpectMember(kWorker, Role::kDataServer, 1), server));
  EXPECT_FALSE(Is(ExpectMember(kWorker, Role::kDataServer, 0), server));
  EXPECT_FALSE(Is(ExpectMember(kWorker, Role::kParameterServer), server));
  for (std::string PeerIdentity::*const field :
       {&PeerIdentity::trust_domain, &PeerIdentity::name_space, &PeerIdentity::job_uid}) {
    PeerIdentity other = server;
    other.*field = "other";
    EXPECT_FALSE(Is(ExpectMember(kWorker, Role::kDataServer), other));
  }
}

TEST(ExpectedPeerTest, AnOperatorMayBeInAnyNamespace) {
  EXPECT_TRUE(Is(ExpectOperator("adamant.local"), kOperator));
  EXPECT_FALSE(Is(ExpectOperator("other.local"), kOperator));
  EXPECT_FALSE(Is(ExpectOperator("adamant.local"), kWorker));
}

TEST(ExpectedPeerTest, ARefusalSaysWhoWasExpectedAndWhoAnswered) {
  EXPECT_EQ(CheckPeer(ExpectOperator("adamant.local"), FormatIdentity(kWorker)).message(),
            "expected operator of adamant.local, not " + FormatIdentity(kWorker));
  EXPECT_EQ(CheckPeer(ExpectMember(kWorker, Role::kDataServer, 2), "https://x").message(),
            "expected data-server-2 of job " + kWorker.job_uid +
                " in namespace team-a, not somebody without an identity");
}

}  // namespace
}  // namespace adamant::security
