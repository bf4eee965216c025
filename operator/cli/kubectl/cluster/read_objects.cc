#include "operator/cli/kubectl/cluster/read_objects.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/cli/console/text.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/base/time.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/yaml/problems.h"

namespace adamant::kubectl {
namespace {

using kube::Find;
using kube::IntAt;
using kube::StringAt;

constexpr char kLeaseName[] = "adamant-operator";
constexpr char kUsualNamespace[] = "adamant-system";  // docs/install.md
constexpr double kLeaseSeconds = 15;                  // three times as long as a lease lasts
constexpr double kReportSeconds = 90;                 // operators report every minute at least

std::string LabelOf(const Json& object, const char* name) {
  return StringAt(object, {"metadata", "labels", name});
}

// Whether `rest` of a name, after that of the job, is of one of its processes or exports.
bool IsOfProcess(std::string_view rest) {
  const auto begins = [rest](std::string_view word) {
    return rest.starts_with(word) &&
           rest.find_first_not_of("0123456789-", word.size()) == std::string_view::npos;
  };
  return begins("-worker-") || begins("-data-server-") || begins("-parameter-server-") ||
         begins("-export-") || rest == "-export-check" || begins("-output");
}

// The reason for which a container does not run; "" while it does.
std::string StateOfContainer(const Json& status) {
  if (const Json* waiting = Find(status, {"state", "waiting"})) {
    const std::string reason = StringAt(*waiting, {"reason"});
    return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing"
               ? "Creating"
               : reason;
  }
  const Json* ended = Find(status, {"state", "terminated"});
  if (ended == nullptr) {
    return "";
  }
  const std::string reason = StringAt(*ended, {"reason"});
  if (!reason.empty() && reason != "Error" && reason != "Completed") {
    return reason;
  }
  const std::int64_t code = IntAt(*ended, {"exitCode"});
  return code == 0 ? "Completed" : "Exited " + std::to_string(code);
}

// Why a name is not found: nothing is installed, or something else has been meant.
absl::Status NoSuchJob(const Session& session, const std::string& name) {
  const auto listed = session.client.List(kube::kTrainingJobs, {.ns = session.ns});
  if (absl::IsNotFound(listed.status())) {
    return absl::FailedPreconditionError(
        "this cluster knows no TrainingJobs; `kubectl apply --server-side -k deploy` installs "
        "Adamant, see docs/install.md");
  }
  ADAMANT_RETURN_IF_ERROR(listed.status());
  std::vector<std::string> names;
  for (const Json& job : *listed) {
    names.push_back(kube::KeyOf(job).name);
  }
  const std::string text = "there is no job " + job::Quote(name) + " in namespace " + session.ns;
  if (names.empty()) {
    return absl::NotFoundError(text + ", nor any other; --namespace names another namespace");
  }
  const std::string hint = job::DidYouMean(name, names);
  return absl::NotFoundError(text + "; " +
                             (hint.empty() ? "there are: " + job::Join(names) : hint));
}

absl::StatusOr<Json> ReadUsualLease(const Session& session) {
  absl::StatusOr<Json> lease = session.client.Get(kube::kLeases, {kUsualNamespace, kLeaseName});
  if (absl::IsNotFound(lease.status())) {
    return Json::object();
  }
  return absl::IsPermissionDenied(lease.status()) ? Json() : std::move(lease);
}

}  // namespace

absl::StatusOr<Json> ReadJob(const Session& session, const std::string& name) {
  absl::StatusOr<Json> job = session.client.Get(kube::kTrainingJobs, {session.ns, name});
  return absl::IsNotFound(job.status()) ? NoSuchJob(session, name) : std::move(job);
}

absl::StatusOr<Json> ReadAgain(const Session& session, const Json& job) {
  absl::StatusOr<Json> now = ReadJob(session, kube::KeyOf(job).name);
  if (absl::IsNotFound(now.status()) || (now.ok() && kube::UidOf(*now) != kube::UidOf(job))) {
    return absl::NotFoundError("the job " + kube::KeyOf(job).name + " was deleted");
  }
  return now;
}

absl::StatusOr<std::vector<Json>> ReadOwned(const Session& session,
                                            const Json& job,
                                            const kube::Resource& resource) {
  return session.client.List(
      resource,
      {.ns = session.ns,
       .label_selector = std::string(kube::kJobUidLabel) + "=" + kube::UidOf(job)});
}

std::string SlotOf(const Json& pod) {
  if (const std::string snapshot = LabelOf(pod, kube::kExportLabel); !snapshot.empty()) {
    return "export-" + snapshot;
  }
  const std::string role = LabelOf(pod, kube::kRoleLabel);
  return role.empty() ? "" : role + "-" + LabelOf(pod, kube::kSlotLabel);
}

std::int64_t GenerationOf(const Json& pod) {
  const std::string text = LabelOf(pod, kube::kGenerationLabel);
  std::int64_t generation = 0;
  std::from_chars(text.data(), text.data() + text.size(), generation);
  return generation;
}

std::string StateOf(const Json& pod) {
  const std::string phase = StringAt(pod, {"status", "phase"}, "Pending");
  std::string state;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& status : ListAt(pod, {"status", list})) {
      const std::string found = StateOfContainer(status);
      if (found != "Completed" || state.empty()) {
        state = found;
      }
    }
  }
  const bool ended = HasEnded(pod);
  if (!ended && !StringAt(pod, {"metadata", "deletionTimestamp"}).empty()) {
    return "Terminating";
  }
  if (phase == "Failed" && !StringAt(pod, {"status", "reason"}).empty()) {
    return StringAt(pod, {"status", "reason"});  // "Evicted"
  }
  if (phase == "Running" && !ended) {
    return phase;
  }
  const Json* scheduled = ConditionOf(pod, "PodScheduled");
  if (scheduled != nullptr && StringAt(*scheduled, {"reason"}) == "SchedulingGated") {
    return "SchedulingGated";
  }
  return state.empty() ? phase : state;
}

bool HasEnded(const Json& pod) {
  const std::string phase = StringAt(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") {
    return true;
  }
  const Json& statuses = ListAt(pod, {"status", "containerStatuses"});
  return !statuses.empty() && std::ranges::all_of(statuses, [](const Json& status) {
    return Find(status, {"state", "terminated"}) != nullptr;
  });
}

bool IsEventOf(const Json& event, const Json& job) {
  const std::string kind = StringAt(event, {"involvedObject", "kind"});
  const std::string name = StringAt(event, {"involvedObject", "name"});
  const std::string of = kube::KeyOf(job).name;
  if (kind == kube::kTrainingJobs.kind) {
    return StringAt(event, {"involvedObject", "uid"}) == kube::UidOf(job);
  }
  return (kind == "Pod" || kind == "PersistentVolumeClaim") && name.starts_with(of) &&
         IsOfProcess(std::string_view(name).substr(of.size())) &&
         TimeOf(event) >= StringAt(job, {"metadata", "creationTimestamp"});
}

bool HasReason(const Json& event, std::string_view reason) {
  std::string found = StringAt(event, {"reason"});
  std::erase_if(found, [](char c) { return c == '_' || c == '-'; });
  return std::ranges::equal(found, reason, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

std::string TimeOf(const Json& event) {
  std::string time = StringAt(event, {"series", "lastObservedTime"});
  time = time.empty() ? StringAt(event, {"lastTimestamp"}) : time;
  time = time.empty() ? StringAt(event, {"eventTime"}) : time;
  return time.empty() ? StringAt(event, {"metadata", "creationTimestamp"}) : time;
}

std::int64_t CountOf(const Json& event) {
  return std::max({std::int64_t{1}, IntAt(event, {"count"}), IntAt(event, {"series", "count"})});
}

absl::StatusOr<Events> ReadEvents(const Session& session, const Json& job) {
  Events found;
  const kube::ListReader reader{.begin = [&found] { found.events.clear(); },
                                .object =
                                    [&](Json& event) {
                                      if (IsEventOf(event, job)) {
                                        found.events.push_back(std::move(event));
                                      }
                                    }};
  ADAMANT_ASSIGN_OR_RETURN(found.version,
                           session.client.List(kube::kEvents, {.ns = session.ns}, reader));
  std::ranges::stable_sort(found.events, {}, TimeOf);
  return found;
}

std::string PhaseOf(const Json& job) { return StringAt(job, {"status", "phase"}); }

bool IsOver(std::string_view phase) { return phase == "Succeeded" || phase == "Failed"; }

absl::StatusOr<Json> ReadLease(const Session& session) {
  absl::StatusOr<std::vector<Json>> leases = session.client.List(
      kube::kLeases, {.field_selector = "metadata.name=" + std::string(kLeaseName)});
  if (absl::IsPermissionDenied(leases.status())) {
    return ReadUsualLease(session);
  }
  ADAMANT_RETURN_IF_ERROR(leases.status());
  const auto newest = std::ranges::max_element(*leases, {}, [](const Json& lease) {
    return StringAt(lease, {"spec", "renewTime"});
  });
  return newest == leases->end() ? Json::object() : std::move(*newest);
}

std::string OperatorsNamespace(const Json& lease) {
  const std::string ns = StringAt(lease, {"metadata", "namespace"});
  return ns.empty() ? kUsualNamespace : ns;
}

std::string LeaseTrouble(const Json& lease, kube::WallTime now) {
  if (lease.is_null()) {
    return "";
  }
  if (lease.empty()) {
    return "no operator leads in namespace " + std::string(kUsualNamespace) +
           ": its lease is not there";
  }
  const double seconds = SecondsSince(StringAt(lease, {"spec", "renewTime"}), now);
  return StringAt(lease, {"spec", "holderIdentity"}).empty() || seconds > kLeaseSeconds
             ? "no operator leads: its lease in namespace " + OperatorsNamespace(lease) +
                   " was last renewed " + cli::FormatSeconds(seconds) + " ago"
             : "";
}

std::string LeaderTrouble(const Json& job, const Json& lease, kube::WallTime now) {
  const std::string phase = PhaseOf(job);
  if (IsOver(phase) || phase == "Suspended") {
    return "";
  }
  if (std::string trouble = LeaseTrouble(lease, now); !trouble.empty()) {
    return trouble;
  }
  const std::string reported = StringAt(job, {"status", "lastReportTime"});
  const double seconds = SecondsSince(reported, now);
  return !reported.empty() && seconds > kReportSeconds
             ? "no operator has reported for " + cli::FormatSeconds(seconds)
             : "";
}

const Json& ListAt(const Json& object, kube::JsonPath path) {
  static const Json kNone = Json::array();
  const Json* found = Find(object, path);
  return found != nullptr && found->is_array() ? *found : kNone;
}

const Json* ConditionOf(const Json& object, std::string_view type) {
  for (const Json& condition : ListAt(object, {"status", "conditions"})) {
    if (StringAt(condition, {"type"}) == type) {
      return &condition;
    }
  }
  return nullptr;
}

double SecondsSince(std::string_view time, kube::WallTime now) {
  const absl::StatusOr<kube::WallTime> parsed = kube::ParseTime(time);
  return parsed.ok() ? std::max(0.0, std::chrono::duration<double>(now - *parsed).count()) : 0;
}

}  // namespace adamant::kubectl
