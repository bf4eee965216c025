#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/kubectl/cluster/session.h"

// What a cluster holds of one job, read as its user.
namespace adamant::kubectl {

using kube::Json;

/// The TrainingJob. Errors: NotFound, with the names that are near, or how to install what is
/// missing; those of the client.
absl::StatusOr<Json> ReadJob(const Session& session, const std::string& name);

/// The same job as it is now. Errors: NotFound: it was deleted, though another may have its name;
/// those of the client.
absl::StatusOr<Json> ReadAgain(const Session& session, const Json& job);

/// Reads what carries the job's UID: its pods, claims or ShardMaps, in the order of their names.
absl::StatusOr<std::vector<Json>> ReadOwned(const Session& session,
                                            const Json& job,
                                            const kube::Resource& resource);

/// "worker-0", "parameter-server-1"; "export-7" for the pod that writes a model; "" for others.
std::string SlotOf(const Json& pod);

/// Returns how often its slot has been started, this time included; 0 for a pod that is no process.
std::int64_t GenerationOf(const Json& pod);

/// "Running", "Pending", "OOMKilled", "SchedulingGated", "ImagePullBackOff", "Exited 1",
/// "Terminating", …
std::string StateOf(const Json& pod);

/// Returns true if none of its containers will run again.
bool HasEnded(const Json& pod);

/// Returns true if an event is about the job, or about one of its pods and claims, those that are
/// gone included: these are known by their names.
bool IsEventOf(const Json& event, const Json& job);

/// Returns true if the event has this reason: "EpochOpened", also as operators up to 0.1 spelt it:
/// "epoch_opened".
bool HasReason(const Json& event, std::string_view reason);

/// Returns when it happened last, as the API writes times.
std::string TimeOf(const Json& event);

/// Returns how often it happened.
std::int64_t CountOf(const Json& event);

/// The events of a job, oldest first. `version`: from where to watch for more.
struct Events {
  std::vector<Json> events;
  std::string version;
};
absl::StatusOr<Events> ReadEvents(const Session& session, const Json& job);

/// The job's phase; "" while nobody has looked at it.
std::string PhaseOf(const Json& job);

/// Succeeded or Failed.
bool IsOver(std::string_view phase);

/// The lease of the operators, of several that which was renewed last; an empty object: there is
/// none; null: it may not be read. Who may not list leases sees that of adamant-system alone, where
/// docs/install.md puts operators. Errors: those of the client.
absl::StatusOr<Json> ReadLease(const Session& session);

/// The namespace of the operators whose lease this is; adamant-system where there is none.
std::string OperatorsNamespace(const Json& lease);

/// Tells why nobody leads, by what ReadLease returned. Empty: somebody does, or it is not known.
std::string LeaseTrouble(const Json& lease, std::chrono::system_clock::time_point now);

/// Tells why what the job's status says may be old: nobody holds `lease` (null: not known), or its
/// operator has not reported for long. Empty: it is as it should be, or the job has ended or is
/// suspended.
std::string LeaderTrouble(const Json& job,
                          const Json& lease,
                          std::chrono::system_clock::time_point now);

/// The list at `path`; an empty one where there is none.
const Json& ListAt(const Json& object, std::initializer_list<std::string_view> path);

/// The condition of that type; null: there is none. Of jobs, pods and nodes.
const Json* ConditionOf(const Json& object, std::string_view type);

/// Seconds from a time of the API to `now`; 0 for what is no time, or in the future.
double SecondsSince(std::string_view time, std::chrono::system_clock::time_point now);

}  // namespace adamant::kubectl
