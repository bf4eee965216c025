#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {

inline const JobIdentity kJob{{"team", "mnist"}, "0a1b2c3d-0000-1111-2222-333344445555"};
inline const PodSettings kPodSettings{.image = {.name = "registry.example/adamant:1"},
                                      .control_service = "adamant-control.adamant:7070"};

/// A small job as the API hands it out; `spec` is merged into its spec.
inline nlohmann::json JobObject(const nlohmann::json& spec = nlohmann::json::object()) {
  nlohmann::json object = nlohmann::json::parse(R"({
      "apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob",
      "spec": {"model": {"reference": "adam-mnist"},
               "data": {"train": {"digits": {"seed": 1, "examples": 1000}},
                        "validation": {"digits": {"seed": 2, "examples": 100}}}}})");
  object["metadata"] = {{"name", kJob.key.name},
                        {"namespace", kJob.key.ns},
                        {"uid", kJob.uid},
                        {"generation", 3},
                        {"resourceVersion", "12"}};
  object["spec"].merge_patch(spec);
  return object;
}

/// JobObject as it is read, with every default.
inline std::unique_ptr<v1::TrainingJob> ReadTestJob(
    const nlohmann::json& spec = nlohmann::json::object()) {
  job::ParseResult result = ReadJob(JobObject(spec));
  if (result.job == nullptr) {
    ADD_FAILURE() << job::Format(result.problems.front());
    return std::make_unique<v1::TrainingJob>();
  }
  return std::move(result.job);
}

}  // namespace adamant::kube
