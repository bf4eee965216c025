#pragma once

#include "services/common/security/peer_identity.h"

// Whom the tests of certificates speak of.
namespace adamant::security {

inline const PeerIdentity kWorker{.trust_domain = "adamant.local",
                                  .name_space = "team-a",
                                  .role = Role::kWorker,
                                  .job_uid = "8f14e45f-ceea-467f-a0e6-3c2a1b9d7e01",
                                  .slot = 3,
                                  .generation = 12};
inline const PeerIdentity kOperator{.trust_domain = "adamant.local",
                                    .name_space = "adamant-system",
                                    .role = Role::kOperator,
                                    .job_uid = ""};

}  // namespace adamant::security
