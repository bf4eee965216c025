#include "operator/kube/data_claims.h"

#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/client/json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

void Mount(const std::string& claim, const std::string& set, Json& pod) {
  const std::string volume = "data-" + set;
  pod["spec"]["volumes"].push_back(
      {{"name", volume}, {"persistentVolumeClaim", {{"claimName", claim}}}});
  pod["spec"]["containers"][0]["volumeMounts"].push_back(
      {{"name", volume}, {"mountPath", std::string(kDataRoot) + "/" + set}, {"readOnly", true}});
}

}  // namespace

void MountData(const v1::TrainingJob& job, Json& pod) {
  const v1::Data& data = job.spec().data();
  if (data.train().idx().has_claim()) {
    Mount(data.train().idx().claim(), "train", pod);
  }
  if (data.validation().idx().has_claim()) {
    Mount(data.validation().idx().claim(), "validation", pod);
  }
}

}  // namespace adamant::kube
