#include "operator/kube_client/api/resource.h"

#include <algorithm>

#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr std::size_t kMaxNameBytes = 253;

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What the API takes for a segment of a path. Most kinds demand more of their names; they say so.
absl::Status CheckName(std::string_view what, std::string_view name) {
  const bool taken = name.empty() || name.size() > kMaxNameBytes || name == "." || name == "..";
  const bool wrong = std::any_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '/' || c == '%' || c == '\x7f';
  });
  if (taken || wrong) {
    return absl::InvalidArgumentError("'" + std::string(name) + "' cannot be a " +
                                      std::string(what));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Resource::api_version() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

std::string ToString(const ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

absl::StatusOr<ObjectKey> ParseObjectKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  ObjectKey key;
  if (slash == std::string_view::npos) {
    key.name = text;
  } else {
    key.ns = text.substr(0, slash);
    key.name = text.substr(slash + 1);
    ADAMANT_RETURN_IF_ERROR(CheckName("namespace", key.ns));
  }
  ADAMANT_RETURN_IF_ERROR(CheckName("name", key.name));
  return key;
}

ObjectKey KeyOf(const Json& object) {
  return {StringAt(object, {"metadata", "namespace"}), StringAt(object, {"metadata", "name"})};
}

std::string UidOf(const Json& object) { return StringAt(object, {"metadata", "uid"}); }

std::string ResourceVersionOf(const Json& object) {
  return StringAt(object, {"metadata", "resourceVersion"});
}

absl::StatusOr<std::string> CollectionPath(const Resource& resource, std::string_view ns) {
  std::string path = (resource.group.empty() ? "/api/" : "/apis/") + resource.api_version() + "/";
  if (!ns.empty()) {
    if (!resource.namespaced) {
      return absl::InvalidArgumentError(std::string(resource.plural) +
                                        " are in no namespace, so not in '" + std::string(ns) +
                                        "'");
    }
    ADAMANT_RETURN_IF_ERROR(CheckName("namespace", ns));
    path += "namespaces/" + PercentEncode(ns) + "/";
  }
  return path + std::string(resource.plural);
}

absl::StatusOr<std::string> ObjectPath(const Resource& resource,
                                       const ObjectKey& key,
                                       std::string_view subresource) {
  if (resource.namespaced && key.ns.empty()) {
    return absl::InvalidArgumentError(std::string(resource.plural) + " '" + key.name +
                                      "': a namespace is needed");
  }
  ADAMANT_RETURN_IF_ERROR(CheckName("name", key.name));
  ADAMANT_ASSIGN_OR_RETURN(std::string path, CollectionPath(resource, key.ns));
  path += "/" + PercentEncode(key.name);
  if (!subresource.empty()) {
    ADAMANT_RETURN_IF_ERROR(CheckName("subresource", subresource));
    path += "/" + PercentEncode(subresource);
  }
  return path;
}

std::string PercentEncode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (IsAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace adamant::kube
