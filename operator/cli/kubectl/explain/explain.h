#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/kube_client/base/json.h"

// Why a job waits, restarted or failed.
namespace adamant::kubectl {

using kube::Json;

/// All that is known of a job and its surroundings. Lists that the user may not read are empty, and
/// named in `unseen`.
struct Observed {
  Json job;
  std::vector<Json> pods;
  std::vector<Json> events;  ///< of the job, its pods and claims, oldest first
  std::vector<Json> claims;  ///< also the one for the output, where it is the user's
  Json lease;                ///< of the operators, as ReadLease returns it
  std::vector<Json> quotas;  ///< ResourceQuotas of the namespace
  std::vector<Json> nodes;   ///< those that its pods are on
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

/// Returns what keeps a pod from running, or ended it, with its causes; nullopt if it runs as it
/// should. Adds what to do to `advice`.
std::optional<Cause> DiagnosePod(const Json& pod,
                                 const Observed& observed,
                                 std::vector<std::string>& advice);

/// Returns what the API refuses of what the job's operator asks for: as the operator tells it, or,
/// where pods are missing without a word, the quotas that are used up. Adds what to do to `advice`.
std::vector<Cause> DiagnoseRefusals(const Observed& observed,
                                    bool pods_are_missing,
                                    std::vector<std::string>& advice);

/// " -n NAMESPACE" of the job, for commands that are advised.
std::string NamespaceFlag(const Observed& observed);

/// The text's lines as causes beside each other.
std::vector<Cause> Lines(std::string_view text);

/// Causes indented under what they cause, then what to do.
std::string ExplanationText(const Explanation& explanation);
std::string ExplanationJson(const Explanation& explanation);

/// Finds in the last lines of a log the one that says how it ended: the last that is no mere report
/// (level info or debug) of a process of ours; the last of all if there is none.
/// Threads: one.
class LastLine {
 public:
  void Add(std::string_view line);
  [[nodiscard]] const std::string& text() const { return telling_.empty() ? last_ : telling_; }

 private:
  std::string last_;
  std::string telling_;
};

/// Returns true if a pod ended otherwise than it should.
bool HasFailed(const Json& pod);

}  // namespace adamant::kubectl
