#include "operator/kube/pods/objects/hardened_pod.h"

#include <nlohmann/json.hpp>

#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

constexpr int kUser = 65532;
constexpr int kGraceSeconds = 30;

}  // namespace

Json HardenedContainer() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", Json::array({"ALL"})}}}};
}

Json HardenedPod(const Json& metadata, const Json& container) {
  return {{"metadata", metadata},
          {"spec",
           {{"restartPolicy", "Never"},  // a restart is a new pod
            {"automountServiceAccountToken", false},
            {"enableServiceLinks", false},
            {"terminationGracePeriodSeconds", kGraceSeconds},
            {"securityContext",
             {{"runAsNonRoot", true},
              {"runAsUser", kUser},
              {"runAsGroup", kUser},
              {"fsGroup", kUser},
              {"fsGroupChangePolicy", "OnRootMismatch"},
              {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
            {"containers", Json::array({container})}}}};
}

}  // namespace adamant::kube
