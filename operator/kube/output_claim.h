#pragma once

#include "absl/status/status.h"
#include "operator/kube/client/client.h"

namespace adamant::kube {

/// Whether a pod can mount this claim and write to it, as far as it can be told without one: it has
/// a volume, or its storage class makes one once a pod wants it, and it is not for reading alone.
/// Errors: FailedPrecondition, which says what is
/// wrong; those of the client.
absl::Status CheckClaim(const Client& client, const ObjectKey& key);

}  // namespace adamant::kube
