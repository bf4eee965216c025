#include "operator/cli/kubectl/check/check_job.h"

#include <nlohmann/json.hpp>

#include "operator/kube/api/custom_resources.h"

namespace adamant::kubectl {
namespace {

using kube::Json;

Json Network() {
  return {{"input", {1, 28, 28}},
          {"classes", 10},
          {"layers",
           Json::array({{{"name", "f1"}, {"kind", "FullyConnected"}, {"outputs", 64}},
                        {{"name", "r1"}, {"kind", "Relu"}},
                        {{"name", "f2"}, {"kind", "FullyConnected"}, {"outputs", 10}}})}};
}

Json Digits(int seed, int examples) {
  return {{"digits", {{"seed", seed}, {"examples", examples}}}};
}

}  // namespace

Json CheckJob(const kube::ObjectKey& key) {
  return {{"apiVersion", kube::kTrainingJobs.api_version()},
          {"kind", kube::kTrainingJobs.kind},
          {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
          {"spec",
           {{"model", {{"network", Network()}}},
            {"data", {{"train", Digits(1, 20'000)}, {"validation", Digits(2, 1'000)}}},
            {"optimiser", {{"kind", "Momentum"}, {"rate", 0.02}, {"momentum", 0.9}}},
            {"distribution",
             {{"workers", 2},
              {"dataServers", 1},
              {"parameterServers", {{"count", 2}, {"storage", {{"size", "512Mi"}}}}}}},
            {"output", {{"storage", {{"size", "64Mi"}}}}},
            {"runPolicy",
             {{"epochs", 1'000'000}, {"activeDeadline", "30m"}, {"ttlAfterFinished", "1h"}}}}}};
}

Json OpenEpochIsLast() { return {{"spec", {{"runPolicy", {{"epochs", 1}}}}}}; }

}  // namespace adamant::kubectl
