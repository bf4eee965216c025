#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {

struct Refusal {
  const char* what;    // "create pod worker-0": how the user knows it
  const char* method;  // of the request that is refused,
  const char* target;  // and a part of its target
  int code;
  const char* message;
  const char* body = "";  // of that request: a part of it
};

/// A job of which the API refuses some requests.
class RefusedJobTest : public JobReconcilerRig {
 protected:
  void LeadTwoServers() {
    Lead({{"distribution",
           {{"workers", 1}, {"parameterServers", {{"count", 2}, {"copies", 2}, {"buckets", 2}}}}}});
  }

  void Refuse(const Refusal& refusal) {
    server_.SetAnswers([refusal](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.method != refusal.method ||
          request.target.find(refusal.target) == std::string::npos ||
          request.body.find(refusal.body) == std::string::npos) {
        return std::nullopt;
      }
      const Json status = {{"kind", "Status"},
                           {"code", refusal.code},
                           {"reason", "Forbidden"},
                           {"message", refusal.message}};
      return HttpResponse{.status = refusal.code, .headers = {}, .body = status.dump()};
    });
  }

  /// What users are told within ten seconds.
  void WorkForTenSeconds() {
    for (int i = 0; i < 10; ++i) {
      WorkAfter(std::chrono::seconds(1));
    }
    events_.Step();
  }

  [[nodiscard]] Json Status() const {
    return client_.Get(kTrainingJobs, kJob.key).value().value("status", Json::object());
  }

  [[nodiscard]] std::string WriteFailure() const {
    for (const Json& condition : Status().value("conditions", Json::array())) {
      if (condition["type"] == "WriteFailure") {
        return condition["status"].get<std::string>() + " " +
               condition["message"].get<std::string>();
      }
    }
    return "";
  }

  /// Takes the name: an object that no TrainingJob owns.
  void Take(const Resource& resource, const std::string& name) {
    const Json object = {{"metadata", {{"namespace", kJob.key.ns}, {"name", name}}}};
    ASSERT_TRUE(client_.Create(resource, object).ok());
  }
};

}  // namespace adamant::kube
