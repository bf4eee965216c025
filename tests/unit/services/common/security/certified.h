#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "services/common/security/certificate_authority.h"
#include "services/common/security/identity_store.h"
#include "services/common/security/private_key.h"
#include "tests/unit/services/common/security/identities.h"

// Certificates for the tests of what uses them.
namespace adamant::security {

inline CertificateAuthority MakeAuthority() {
  const WallTime now = std::chrono::system_clock::now();
  return CertificateAuthority::Make(now - std::chrono::hours(48), std::chrono::hours(24 * 365))
      .value();
}

/// A process of the tests' job, or an operator.
inline PeerIdentity As(Role role, std::uint32_t slot = 0) {
  PeerIdentity identity = role == Role::kOperator ? kOperator : kWorker;
  identity.role = role;
  identity.slot = slot;
  return identity;
}

/// How a certificate is made.
struct Making {
  WallTime begin = std::chrono::system_clock::now();
  std::chrono::seconds life = std::chrono::hours(1);
};

inline void Renew(IdentityStore& store,
                  const CertificateAuthority& authority,
                  const PeerIdentity& identity,
                  const Making& making = {}) {
  const PrivateKey key = PrivateKey::Make().value();
  const std::string chain =
      authority.Sign(key.MakeRequest().value(), identity, making.begin, making.life).value();
  const absl::Status status = store.Set(chain, key, authority.roots(), making.begin);
  ASSERT_TRUE(status.ok()) << status;
}

inline std::shared_ptr<IdentityStore> Certified(const CertificateAuthority& authority,
                                                const PeerIdentity& identity,
                                                const Making& making = {}) {
  auto store = std::make_shared<IdentityStore>();
  Renew(*store, authority, identity, making);
  return store;
}

}  // namespace adamant::security
