#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/cli/kubectl/explain/explain.h"
#include "operator/kube_client/base/time.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

// What Explain is told, and what it makes of it.
namespace adamant::kubectl {

inline Observed At(Json job, std::vector<Json> pods = {}) {
  Observed observed;
  observed.job = std::move(job);
  observed.pods = std::move(pods);
  observed.now = *kube::ParseTime("2026-01-31T12:02:00Z");
  return observed;
}

inline std::string Explained(const Observed& observed) {
  return ExplanationText(Explain(observed));
}

inline Json Condition(const std::string& type,
                      const std::string& status,
                      const std::string& message) {
  return {{"type", type}, {"status", status}, {"reason", "R"}, {"message", message}};
}

inline Json Pending(const std::string& reason, const std::string& message) {
  Json pod = ThePod("worker", 1);
  pod["status"] = {{"phase", "Pending"},
                   {"conditions", Json::array({Condition("PodScheduled", "False", message)})}};
  pod["status"]["conditions"][0]["reason"] = reason;
  pod["spec"].erase("nodeName");
  return pod;
}

}  // namespace adamant::kubectl
