#include "operator/kube/volumes/data_claims.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {

void MountData(const v1::TrainingJob& job, Json& pod) {
  const v1::Data& data = job.spec().data();
  const std::array sets = {std::pair("train", &data.train().idx()),
                           std::pair("validation", &data.validation().idx())};
  std::map<std::string, std::string> volumes;  // of the claims
  for (const auto& [set, files] : sets) {
    if (!files->has_claim()) {
      continue;
    }
    const auto [volume, is_new] = volumes.emplace(files->claim(), std::string("data-") + set);
    if (is_new) {
      pod["spec"]["volumes"].push_back(
          {{"name", volume->second},
           {"persistentVolumeClaim", {{"claimName", files->claim()}, {"readOnly", true}}}});
    }
    pod["spec"]["containers"][0]["volumeMounts"].push_back(
        {{"name", volume->second},
         {"mountPath", std::string(kDataRoot) + "/" + set},
         {"readOnly", true}});
  }
}

}  // namespace adamant::kube
