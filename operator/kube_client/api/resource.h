#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {

/// A kind of object that the API serves. The views are of literals.
struct Resource {
  std::string_view group;  ///< "": the core group
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;

  /// "v1", "apps/v1".
  [[nodiscard]] std::string api_version() const;

  friend bool operator==(const Resource&, const Resource&) = default;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kServices{"", "v1", "services", "Service"};
inline constexpr Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline constexpr Resource kPersistentVolumeClaims{
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
inline constexpr Resource kEvents{"", "v1", "events", "Event"};
inline constexpr Resource kNodes{"", "v1", "nodes", "Node", false};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr Resource kPersistentVolumes{
    "", "v1", "persistentvolumes", "PersistentVolume", false};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr Resource kPodDisruptionBudgets{
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"};
inline constexpr Resource kNetworkPolicies{
    "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};

/// Namespace and name of an object. `ns` is empty for resources without namespaces.
struct ObjectKey {
  std::string ns;
  std::string name;

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

/// "default/mnist", or "mnist" without a namespace.
std::string ToString(const ObjectKey& key);

/// Reads what ToString made. Errors: InvalidArgument.
absl::StatusOr<ObjectKey> ParseObjectKey(std::string_view text);

/// From an object's metadata.
ObjectKey KeyOf(const Json& object);
std::string UidOf(const Json& object);
std::string ResourceVersionOf(const Json& object);

/// The path of a collection: "/apis/apps/v1/namespaces/default/deployments"; of all namespaces if
/// `ns` is empty. Errors: InvalidArgument for what cannot be a namespace.
absl::StatusOr<std::string> CollectionPath(const Resource& resource, std::string_view ns);

/// The path of an object, or of its `subresource` ("status", "scale", "eviction").
/// Errors: InvalidArgument for what cannot be a name, or a missing or needless namespace.
absl::StatusOr<std::string> ObjectPath(const Resource& resource,
                                       const ObjectKey& key,
                                       std::string_view subresource = "");

/// Percent-encodes all but RFC 3986's unreserved characters.
std::string PercentEncode(std::string_view text);

}  // namespace adamant::kube
