#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/cluster/pod_log.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/cli/kubectl/explain/explain.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

constexpr kube::Resource kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};
constexpr std::chrono::seconds kLogWait{5};
constexpr std::size_t kMostLogs = 10;
constexpr std::size_t kLongestLine = 300;
constexpr int kLogTail = 50;

constexpr char kExamples[] = R"(Examples:
  kubectl adamant explain mnist            why it waits, restarted or failed, and what to do
  kubectl adamant explain mnist -o json)";

// What may be missing: who may look at jobs may not look at everything around them.
template <class T>
absl::Status Optional(absl::StatusOr<T> read, const char* what, T& value, Observed& observed) {
  if (absl::IsPermissionDenied(read.status()) || absl::IsNotFound(read.status())) {
    observed.unseen.emplace_back(what);
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(read.status());
  value = *std::move(read);
  return absl::OkStatus();
}

absl::Status ReadNodes(const Session& session, Observed& observed) {
  std::set<std::string> names;
  for (const Json& pod : observed.pods) {
    const std::string name = kube::StringAt(pod, {"spec", "nodeName"});
    if (!name.empty() && !HasEnded(pod) && names.insert(name).second) {
      Json node;
      ADAMANT_RETURN_IF_ERROR(
          Optional(session.client.Get(kube::kNodes, {"", name}), "nodes", node, observed));
      if (node.is_null()) {
        return absl::OkStatus();
      }
      observed.nodes.push_back(std::move(node));
    }
  }
  return absl::OkStatus();
}

// A log that cannot be read is not told of: the rest still explains.
void ReadLastLines(const Session& session, Observed& observed) {
  for (const Json& pod : observed.pods) {
    if (!HasFailed(pod) || observed.last_lines.size() == kMostLogs) {
      continue;
    }
    const kube::ObjectKey key = kube::KeyOf(pod);
    LastLine last;
    ReadLog(session, key, {.tail = kLogTail, .idle = kLogWait}, [&](std::string_view line) {
      last.Add(line.substr(0, kLongestLine));
      return true;
    }).IgnoreError();
    if (!last.text().empty()) {
      observed.last_lines[key.name] = last.text();
    }
  }
}

// The claim of the user's that the output goes to; where there is none the job's condition says so.
absl::Status ReadOutputClaim(const Session& session, Observed& observed) {
  const std::string name = kube::StringAt(observed.job, {"spec", "output", "claim"});
  if (name.empty()) {
    return absl::OkStatus();
  }
  absl::StatusOr<Json> claim =
      session.client.Get(kube::kPersistentVolumeClaims, {session.ns, name});
  if (!claim.ok()) {
    return absl::IsNotFound(claim.status()) ? absl::OkStatus() : claim.status();
  }
  observed.claims.push_back(*std::move(claim));
  return absl::OkStatus();
}

absl::StatusOr<Observed> Observe(const Session& session, const std::string& name) {
  Observed observed;
  ADAMANT_ASSIGN_OR_RETURN(observed.job, ReadJob(session, name));
  ADAMANT_ASSIGN_OR_RETURN(observed.pods, ReadOwned(session, observed.job, kube::kPods));
  ADAMANT_ASSIGN_OR_RETURN(observed.claims,
                           ReadOwned(session, observed.job, kube::kPersistentVolumeClaims));
  ADAMANT_RETURN_IF_ERROR(ReadOutputClaim(session, observed));
  ADAMANT_ASSIGN_OR_RETURN(observed.lease, ReadLease(session));
  Events events;
  ADAMANT_RETURN_IF_ERROR(Optional(ReadEvents(session, observed.job), "events", events, observed));
  observed.events = std::move(events.events);
  ADAMANT_RETURN_IF_ERROR(Optional(session.client.List(kResourceQuotas, {.ns = session.ns}),
                                   "quotas",
                                   observed.quotas,
                                   observed));
  ADAMANT_RETURN_IF_ERROR(ReadNodes(session, observed));
  ReadLastLines(session, observed);
  observed.now = session.clock.WallNow();
  return observed;
}

std::string UnseenText(const Observed& observed) {
  std::string text;
  for (const std::string& what : observed.unseen) {
    text += (text.empty() ? "\nnot looked at, for lack of rights: " : ", ") + what;
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

absl::StatusOr<int> ShowExplanation(Session& session, const ExplainFlags& flags) {
  ADAMANT_ASSIGN_OR_RETURN(const Observed observed, Observe(session, flags.target.job));
  const Explanation explanation = Explain(observed);
  session.print(flags.json ? ExplanationJson(explanation) + "\n"
                           : ExplanationText(explanation) + UnseenText(observed));
  return cli::kOk;
}

void AddExplain(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("explain", "Say why a job waits, restarted or failed, and what to do");
  const auto flags = std::make_shared<ExplainFlags>();
  AddTarget(command, flags->target);
  AddOutput(command, flags->json);
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(
        flags->target, [&flags](Session& session) { return ShowExplanation(session, *flags); });
  });
}

}  // namespace adamant::kubectl
