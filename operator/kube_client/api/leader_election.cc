#include "operator/kube_client/api/leader_election.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/time.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::milliseconds kShortestTimeout{200};

// Somebody has written the lease since we read it.
bool IsStale(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsAlreadyExists(status) || absl::IsNotFound(status);
}

}  // namespace

LeaderElection::LeaderElection(const Client& client,
                               LeaderElectionOptions options,
                               LeaderCallbacks callbacks,
                               const Clock& clock,
                               Sleeper& sleeper)
    : client_(client.WithoutRetries()),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      clock_(clock),
      sleeper_(sleeper),
      rng_(options_.seed) {}

void LeaderElection::Start() {
  thread_.emplace([this] { return Step(); }, cancellation_, sleeper_);
}

void LeaderElection::Stop() {
  cancellation_.Cancel();
  thread_.reset();
  Release();
}

Clock::Duration LeaderElection::Step() {
  const absl::Status status = Attempt();
  const bool failed = !status.ok() && !absl::IsCancelled(status);
  if (failed && !failing_) {
    LogWarning("the lease can be neither read nor renewed",
               {{"lease", ToString(options_.lease)}, {"error", status.ToString()}});
  }
  failing_ = failed;
  if (role_ == Role::kLeader && clock_.Now() >= renewed_ + options_.renew_deadline) {
    role_ = Role::kLost;
    callbacks_.lost();
  }
  return UntilNextStep(failed);
}

absl::Status LeaderElection::Attempt() {
  if (role_ != Role::kLeader || !ours()) {
    ADAMANT_RETURN_IF_ERROR(Read());
  }
  const absl::Status status = Take();
  if (!IsStale(status)) {
    return status;
  }
  // Our own write may have been carried out although we did not hear of it.
  ADAMANT_RETURN_IF_ERROR(Read());
  return Take();
}

// Takes or renews the lease, unless it is another one's.
absl::Status LeaderElection::Take() {
  if (record_.has_value() && !ours() && !record_->holder.empty() && clock_.Now() < Expiry()) {
    return absl::OkStatus();
  }
  const Clock::TimePoint sent = clock_.Now();
  std::chrono::milliseconds timeout = options_.renew_deadline;
  if (role_ == Role::kLeader) {
    timeout = std::max(kShortestTimeout,
                       std::chrono::duration_cast<std::chrono::milliseconds>(
                           renewed_ + options_.renew_deadline - sent));
  }
  ADAMANT_RETURN_IF_ERROR(Write(client_.With(cancellation_).With(timeout), options_.identity));
  renewed_ = sent;
  if (role_ != Role::kLeader) {
    role_ = Role::kLeader;
    callbacks_.started(record_->transitions);
  }
  TellLeader();
  return absl::OkStatus();
}

absl::Status LeaderElection::Read() {
  const absl::StatusOr<Json> lease =
      client_.With(cancellation_).With(options_.renew_deadline).Get(kLeases, options_.lease);
  if (absl::IsNotFound(lease.status())) {
    record_.reset();
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(lease.status());
  Observe(*lease);
  if (!ours()) {
    StandDown();
  }
  TellLeader();
  return absl::OkStatus();
}

absl::Status LeaderElection::Write(const Client& client, const std::string& holder) {
  using std::chrono::seconds;
  const std::string now = FormatMicroTime(clock_.WallNow());
  const bool changes_hands = record_.has_value() && record_->holder != holder && !holder.empty();
  Json lease = {{"metadata", {{"namespace", options_.lease.ns}, {"name", options_.lease.name}}},
                {"spec",
                 {{"holderIdentity", holder},
                  {"renewTime", now},
                  {"leaseDurationSeconds", std::chrono::ceil<seconds>(options_.duration).count()},
                  {"leaseTransitions",
                   record_.has_value() ? record_->transitions + (changes_hands ? 1 : 0) : 0}}}};
  if (!record_.has_value() || changes_hands) {
    lease["spec"]["acquireTime"] = now;
  }
  absl::StatusOr<Json> written;
  if (record_.has_value()) {
    // A patch of that version only, so that what others have put into the object stays.
    lease["metadata"]["resourceVersion"] = record_->resource_version;
    written = client.Patch(kLeases, options_.lease, PatchType::kMerge, lease);
  } else {
    written = client.Create(kLeases, std::move(lease));
  }
  ADAMANT_RETURN_IF_ERROR(written.status());
  Observe(*written);
  return absl::OkStatus();
}

void LeaderElection::Observe(const Json& lease) {
  Record record{.resource_version = ResourceVersionOf(lease),
                .spec = DumpJson(lease.value("spec", Json::object())),
                .holder = StringAt(lease, {"spec", "holderIdentity"}),
                .duration = std::chrono::seconds(std::clamp<std::int64_t>(
                    IntAt(lease, {"spec", "leaseDurationSeconds"}), 0, 3600)),
                .transitions = IntAt(lease, {"spec", "leaseTransitions"})};
  if (record.duration <= std::chrono::milliseconds::zero()) {
    record.duration = options_.duration;
  }
  // While it could not be read its holder could not renew it either: that time does not count.
  if (!record_.has_value() || record_->spec != record.spec || failing_) {
    observed_ = clock_.Now();
  }
  record_ = std::move(record);
}

void LeaderElection::TellLeader() {
  if (record_.has_value() && !record_->holder.empty() && record_->holder != leader_) {
    leader_ = record_->holder;
    callbacks_.new_leader(leader_);
  }
}

void LeaderElection::StandDown() {
  if (std::exchange(role_, Role::kStandby) != Role::kStandby) {
    callbacks_.stopped();
  }
}

void LeaderElection::Release() {
  if (role_ == Role::kStandby) {
    return;
  }
  if (ours()) {
    const absl::Status status = Write(client_.With(options_.renew_interval), "");
    if (!status.ok()) {
      LogWarning("the lease was not given up: others wait until it is over",
                 {{"lease", ToString(options_.lease)}, {"error", status.ToString()}});
    }
  }
  StandDown();
}

bool LeaderElection::ours() const {
  return record_.has_value() && record_->holder == options_.identity;
}

Clock::TimePoint LeaderElection::Expiry() const { return observed_ + record_->duration; }

Clock::Duration LeaderElection::UntilNextStep(bool failed) {
  const Clock::TimePoint now = clock_.Now();
  if (role_ == Role::kLeader && !failed) {
    return std::max(Clock::Duration::zero(), renewed_ + options_.renew_interval - now);
  }
  const auto poll =
      std::chrono::duration_cast<Clock::Duration>(options_.poll_interval * rng_.Uniform(1.0, 1.2));
  Clock::TimePoint next = now + poll;
  if (role_ == Role::kLeader) {
    next = std::min(next, renewed_ + options_.renew_deadline);
  } else if (record_.has_value() && !ours() && Expiry() > now) {
    next = std::min(next, Expiry());
  }
  return std::max(Clock::Duration::zero(), next - now);
}

}  // namespace adamant::kube
