#include "tests/integration/operator/kube_client/cluster_rig.h"

#include <nlohmann/json.hpp>

namespace adamant::kube {

absl::Status ClusterTest::CreateNamespace() {
  return NewClient().Create(kNamespaces, {{"metadata", {{"name", ns_}}}}).status();
}

Json ClusterTest::Map(const std::string& name, const std::string& value) const {
  return {{"metadata", {{"namespace", ns_}, {"name", name}, {"labels", {{"made-by", "test"}}}}},
          {"data", {{"value", value}}}};
}

}  // namespace adamant::kube
