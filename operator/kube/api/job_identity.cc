#include "operator/kube/api/job_identity.h"

#include <nlohmann/json.hpp>

#include "operator/kube/schema/job_object.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {

Json MetadataOf(const JobIdentity& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.key.ns},
          {"labels",
           {{"app.kubernetes.io/name", "adamant"},
            {"app.kubernetes.io/managed-by", "adamant-operator"},
            {kJobLabel, job.key.name},
            {kJobUidLabel, job.uid}}},
          {"ownerReferences",
           Json::array({{{"apiVersion", std::string(kGroup) + "/" + kVersion},
                         {"kind", "TrainingJob"},
                         {"name", job.key.name},
                         {"uid", job.uid},
                         {"controller", true},
                         {"blockOwnerDeletion", true}}})}};
}

}  // namespace adamant::kube
