#include "services/common/security/identity_store.h"

#include <gtest/gtest.h>

#include "services/common/security/certificate_authority.h"
#include "tests/unit/services/common/security/identities.h"

namespace adamant::security {
namespace {

const WallTime kStart = std::chrono::system_clock::from_time_t(1'800'000'000);
constexpr std::chrono::hours kDay(24);

class IdentityStoreTest : public testing::Test {
 protected:
  std::string Sign(const PrivateKey& key, const PeerIdentity& identity = kWorker) {
    return authority_.Sign(key.MakeRequest().value(), identity, kStart, kDay).value();
  }

  absl::Status Set(const PrivateKey& key, const PeerIdentity& identity = kWorker) {
    return store_.Set(Sign(key, identity), key, authority_.roots(), kStart);
  }

  CertificateAuthority authority_ = CertificateAuthority::Make(kStart, 30 * kDay).value();
  PrivateKey key_ = PrivateKey::Make().value();
  PrivateKey other_key_ = PrivateKey::Make().value();
  IdentityStore store_;
};

TEST_F(IdentityStoreTest, HasNothingAtFirst) {
  EXPECT_EQ(store_.Get(), nullptr);
  EXPECT_FALSE(store_.SetRoots(authority_.roots()).ok());
}

TEST_F(IdentityStoreTest, GivesWhatWasSetLast) {
  ASSERT_TRUE(Set(key_).ok());
  const auto first = store_.Get();
  EXPECT_EQ(first->content.identity, kWorker);
  EXPECT_EQ(first->content.not_after, kStart + kDay);
  EXPECT_EQ(first->key, key_.ToPem());
  EXPECT_EQ(first->roots, authority_.roots());
  ASSERT_TRUE(Set(other_key_).ok());
  EXPECT_EQ(store_.Get()->key, other_key_.ToPem());
  EXPECT_GT(store_.Get()->version, first->version);
  EXPECT_EQ(first->key, key_.ToPem());  // who has it keeps it
}

TEST_F(IdentityStoreTest, RootsAreReplacedAlone) {
  ASSERT_TRUE(Set(key_).ok());
  const auto first = store_.Get();
  ASSERT_TRUE(authority_.PrepareNext(kStart, 30 * kDay).ok());
  ASSERT_TRUE(store_.SetRoots(authority_.roots()).ok());
  EXPECT_EQ(store_.Get()->roots, authority_.roots());
  EXPECT_EQ(store_.Get()->chain, first->chain);
  EXPECT_GT(store_.Get()->version, first->version);
  EXPECT_FALSE(store_.SetRoots("").ok());
  EXPECT_FALSE(store_.SetRoots(first->chain).ok());
  EXPECT_EQ(store_.Get()->roots, authority_.roots());
}

TEST_F(IdentityStoreTest, WhatDoesNotFitChangesNothing) {
  ASSERT_TRUE(Set(key_).ok());
  const auto first = store_.Get();
  PeerIdentity other = kWorker;
  other.slot = 4;
  EXPECT_FALSE(Set(key_, other).ok());
  EXPECT_FALSE(store_.Set(Sign(key_), other_key_, authority_.roots(), kStart).ok());
  EXPECT_FALSE(store_.Set(Sign(key_), key_, authority_.roots(), kStart + 2 * kDay).ok());
  const auto stranger = CertificateAuthority::Make(kStart, 30 * kDay).value();
  EXPECT_FALSE(store_.Set(Sign(key_), key_, stranger.roots(), kStart).ok());
  EXPECT_EQ(store_.Get(), first);
}

}  // namespace
}  // namespace adamant::security
