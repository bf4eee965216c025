#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/cli/kubectl/cluster/session.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_identity.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"

// A job "mnist" with uid "u1" and what surrounds it, as the API hands it out.
namespace adamant::kubectl {

using kube::Json;

inline Json TheJob(const std::string& phase) {
  Json job = {{"metadata",
               {{"name", "mnist"},
                {"namespace", "training"},
                {"uid", "u1"},
                {"creationTimestamp", "2026-01-31T12:00:00Z"}}},
              {"spec", Json::object()}};
  if (!phase.empty()) {
    job["status"] = {{"phase", phase}};
  }
  return job;
}

/// A pod of the job's role and slot, running.
inline Json ThePod(const std::string& role, int slot, int generation = 1) {
  const std::string name =
      "mnist-" + role + "-" + std::to_string(slot) + "-" + std::to_string(generation);
  return {{"metadata",
           {{"name", name},
            {"namespace", "training"},
            {"uid", "uid-of-" + name},
            {"creationTimestamp", "2026-01-31T12:00:00Z"},
            {"labels",
             {{kube::kJobLabel, "mnist"},
              {kube::kJobUidLabel, "u1"},
              {kube::kRoleLabel, role},
              {kube::kSlotLabel, std::to_string(slot)},
              {kube::kGenerationLabel, std::to_string(generation)}}}}},
          {"spec", {{"nodeName", "node1"}}},
          {"status",
           {{"phase", "Running"},
            {"containerStatuses",
             Json::array({{{"name", "adamant"},
                           {"image", "adamant:1"},
                           {"state", {{"running", Json::object()}}}}})}}}};
}

inline Json& StateOfContainer(Json& pod) { return pod["status"]["containerStatuses"][0]["state"]; }

/// Ends a pod.
inline Json Ended(Json pod, int code, const std::string& reason = "Error") {
  pod["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
  StateOfContainer(pod) = {{"terminated", {{"exitCode", code}, {"reason", reason}}}};
  return pod;
}

/// A pod whose container waits.
inline Json Waiting(Json pod, const std::string& reason, const std::string& message) {
  pod["status"]["phase"] = "Pending";
  StateOfContainer(pod) = {{"waiting", {{"reason", reason}, {"message", message}}}};
  return pod;
}

inline Json EventOf(const Json& object,
                    const std::string& kind,
                    const std::string& reason,
                    const std::string& message,
                    const std::string& time = "2026-01-31T12:01:00Z") {
  static int number = 0;
  return {{"metadata", {{"name", "event-" + std::to_string(++number)}, {"namespace", "training"}}},
          {"involvedObject",
           {{"kind", kind},
            {"name", object["metadata"]["name"]},
            {"namespace", "training"},
            {"uid", object["metadata"]["uid"]}}},
          {"type", "Warning"},
          {"reason", reason},
          {"message", message},
          {"lastTimestamp", time}};
}

/// A cluster in memory and a session in it.
class Rig {
 public:
  Rig() : sleeper(clock), api(clock) {}

  Session NewSession() {
    return {.client = client,
            .ns = "training",
            .clock = clock,
            .sleeper = sleeper,
            .cancellation = {},
            .print = [this](const std::string& text) { printed += text; }};
  }

  /// As the API has it afterwards. The UID is of the API's choice.
  Json Put(const kube::Resource& resource, Json object) {
    const Json status = object.value("status", Json());
    object.erase("status");
    Json made = *client.Create(resource, std::move(object));
    if (!status.is_null()) {
      made["status"] = status;
      made = *client.Update(resource, made, "status");
    }
    return made;
  }

  /// Creates the job, and gives its pods and maps its UID.
  Json PutJob(const std::string& phase) {
    job = Put(kube::kTrainingJobs, TheJob(phase));
    return job;
  }
  Json PutOwned(const kube::Resource& resource, Json object) {
    object["metadata"]["labels"][kube::kJobUidLabel] = kube::UidOf(job);
    return Put(resource, std::move(object));
  }

  /// The operators' lease, renewed at this time.
  Json PutLease(const std::string& renewed = "1970-01-01T01:00:00.000000Z",
                const std::string& ns = "adamant-system") {
    return Put(kube::kLeases,
               {{"metadata", {{"name", "adamant-operator"}, {"namespace", ns}}},
                {"spec", {{"holderIdentity", "a"}, {"renewTime", renewed}}}});
  }

  FakeClock clock;
  kube::FakeSleeper sleeper;
  kube::MemoryApiServer api;
  kube::Client client{api, clock, sleeper};
  Json job;
  std::string printed;
};

}  // namespace adamant::kubectl
