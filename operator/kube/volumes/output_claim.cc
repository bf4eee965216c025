#include "operator/kube/volumes/output_claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube_client/base/json.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false};

// A claim of such a class has no volume before a pod wants it. A class that is not there is of
// volumes that somebody has made, and they are bound at once.
absl::StatusOr<bool> WaitsForPod(const Client& client, const std::string& storage_class) {
  const auto found = client.Get(kStorageClasses, {"", storage_class});
  if (absl::IsPermissionDenied(found.status())) {
    return true;  // an operator that may not look does not hold the job up
  }
  if (absl::IsNotFound(found.status())) {
    return false;
  }
  if (!found.ok()) {
    return found.status();
  }
  return StringAt(*found, {"volumeBindingMode"}) == "WaitForFirstConsumer";
}

// As far as what it asks for says; nothing is asked of a claim that takes the API's defaults.
absl::Status CheckIsWritable(const Json& claim) {
  const Json* modes = Find(claim, {"spec", "accessModes"});
  const auto is_read_only = [](const Json& mode) { return mode == "ReadOnlyMany"; };
  if (modes != nullptr && modes->is_array() && !modes->empty() &&
      std::ranges::all_of(*modes, is_read_only)) {
    return absl::FailedPreconditionError(
        "it can only be read (accessModes: ReadOnlyMany), and the model is to be written to it");
  }
  if (StringAt(claim, {"spec", "volumeMode"}) == "Block") {
    return absl::FailedPreconditionError(
        "it is a block device (volumeMode: Block), and the model is to be written to a file "
        "system");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> CheckClaim(const Client& client,
                                       const ObjectKey& key,
                                       bool sees_cluster) {
  const auto claim = client.Get(kPersistentVolumeClaims, key);
  if (absl::IsNotFound(claim.status())) {
    return absl::FailedPreconditionError("there is no claim " + key.name + " in namespace " +
                                         key.ns + "; the job begins once there is");
  }
  if (!claim.ok()) {
    return claim.status();
  }
  const std::string phase = StringAt(*claim, {"status", "phase"}, "Pending");
  if (!StringAt(*claim, {"metadata", "deletionTimestamp"}).empty()) {
    return absl::FailedPreconditionError("it is being deleted");
  }
  ADAMANT_RETURN_IF_ERROR(CheckIsWritable(*claim));
  if (phase == "Bound") {
    return UidOf(*claim);
  }
  if (phase == "Lost") {
    return absl::FailedPreconditionError("its volume is lost");
  }
  const std::string storage_class = StringAt(*claim, {"spec", "storageClassName"});
  absl::StatusOr<bool> waits = !storage_class.empty();
  if (*waits && sees_cluster) {
    waits = WaitsForPod(client, storage_class);
  }
  if (!waits.ok()) {
    return waits.status();
  }
  if (!*waits) {
    return absl::FailedPreconditionError(
        "it has no volume, and nothing shows that it will get one (storage class " +
        (storage_class.empty() ? "none" : storage_class) + "); the job begins once it has");
  }
  return UidOf(*claim);
}

}  // namespace adamant::kube
