#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "operator/kube_client/api/client.h"

namespace adamant::kube {

/// Checks that a pod can mount and write to this claim, as far as can be told without one: it has
/// a volume, or its storage class makes one once a pod wants it, and it is not for reading alone.
/// One that has no volume yet is taken to get one where `sees_cluster` is false: storage classes
/// are not asked for then. Returns its UID. Errors: FailedPrecondition, which says what is wrong;
/// those of the client.
absl::StatusOr<std::string> CheckClaim(const Client& client,
                                       const ObjectKey& key,
                                       bool sees_cluster);

}  // namespace adamant::kube
