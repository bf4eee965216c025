#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube_client/base/json.h"

namespace adamant::kubectl {

using kube::Json;

/// Objects that `status` shows of a job.
struct StatusObjects {
  Json job;
  std::vector<Json> pods;
  std::vector<Json> claims;
  std::vector<Json> shard_maps;
  Json lease;  ///< of the operators, as ReadLease returns it
  std::chrono::system_clock::time_point now;
};

/// The job in a few lines, its conditions, pods and claims as tables, and where its buckets are.
std::string StatusText(const StatusObjects& objects);

/// The same as one JSON object without a line end; docs/kubectl.md lists its fields.
std::string StatusJson(const StatusObjects& objects);

}  // namespace adamant::kubectl
