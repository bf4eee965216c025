#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/client/json.h"

// Why a job waits, restarted or failed.
namespace adamant::kubectl {

using kube::Json;

/// What is known of a job and its surroundings. Lists that the user may not read are empty, and
/// named in `unseen`.
struct Observed {
  Json job;
  std::vector<Json> pods;
  std::vector<Json> events;  ///< of the job, its pods and claims, oldest first
  std::vector<Json> claims;
  std::vector<Json> quotas;                       ///< ResourceQuotas of the namespace
  std::vector<Json> nodes;                        ///< those that its pods are on
  std::map<std::string, std::string> last_lines;  ///< of the logs of pods that failed, by name
  std::vector<std::string> unseen;                ///< "quotas", "nodes"
  std::chrono::system_clock::time_point now;
};

/// Something that holds, and why.
struct Cause {
  std::string text;
  std::vector<Cause> because = {};
};

struct Explanation {
  Cause cause;
  std::vector<std::string> advice;  ///< what to do, the most helpful first
};

/// Follows what is observed back to what it comes from. Pure.
Explanation Explain(const Observed& observed);

/// What keeps a pod from running, or ended it, with its causes; nullopt if it runs as it should.
/// Adds what to do to `advice`.
std::optional<Cause> DiagnosePod(const Json& pod,
                                 const Observed& observed,
                                 std::vector<std::string>& advice);

/// Causes indented under what they cause, then what to do.
std::string ExplanationText(const Explanation& explanation);
std::string ExplanationJson(const Explanation& explanation);

/// Whether a pod ended otherwise than it should.
bool HasFailed(const Json& pod);

}  // namespace adamant::kubectl
