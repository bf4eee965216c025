#include "operator/kube/status/job_status.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "operator/core/state/state.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube/volumes/claim_object.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {
namespace {

using controller::JobReport;
using controller::Phase;
using controller::Role;
using Status = v1::TrainingJobStatus;

constexpr char kDiverged[] = "Diverged";
constexpr char kWriteFailure[] = "WriteFailure";
constexpr char kOutputWritable[] = "OutputWritable";
constexpr char kSecured[] = "Secured";
// A reason; that of a Kubernetes Job.
constexpr char kDeadlineExceeded[] = "DeadlineExceeded";
constexpr std::size_t kMostFailures = 5;  // that a condition names

// To the millisecond; what is not known, or has gone wrong, is none.
void SetDuration(double seconds, google::protobuf::Duration& duration) {
  constexpr double kMilliseconds = 1000;
  constexpr std::int64_t kNanoseconds = 1'000'000;
  const double most = kMilliseconds * 1e9;
  const double known = std::isfinite(seconds) ? std::max(0.0, seconds) : 0;
  const auto milliseconds =
      static_cast<std::int64_t>(std::min(most, std::round(known * kMilliseconds)));
  duration.set_seconds(milliseconds / 1000);
  duration.set_nanos(static_cast<std::int32_t>(milliseconds % 1000 * kNanoseconds));
}

Status::Phase PhaseOf(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return Status::PHASE_PENDING;
    case Phase::kStarting:
      return Status::PHASE_STARTING;
    case Phase::kRunning:
      return Status::PHASE_RUNNING;
    case Phase::kEvaluating:
      return Status::PHASE_EVALUATING;
    case Phase::kSucceeded:
      return Status::PHASE_SUCCEEDED;
    case Phase::kFailed:
      return Status::PHASE_FAILED;
    case Phase::kSuspended:
      return Status::PHASE_SUSPENDED;
  }
  return Status::PHASE_UNSPECIFIED;
}

// A condition as it is now; it keeps the time of its last transition.
struct Finding {
  const char* type;
  bool holds;
  std::string reason;
  std::string message;
};

Finding ValidityOf(const JobView& view) {
  const bool valid = view.problems.empty();
  return {"Valid", valid, valid ? "Accepted" : "InvalidSpec", view.problems};
}

// Data can only be looked at where it is: by the data servers.
Finding InvalidData(const JobReport& report) {
  return {"Valid", false, "InvalidData", report.message};
}

void AddCondition(const Finding& finding,
                  const JobView& view,
                  const std::string& now,
                  Status& status) {
  v1::Condition& condition = *status.add_conditions();
  condition.set_type(finding.type);
  condition.set_status(finding.holds ? v1::Condition::STATUS_TRUE : v1::Condition::STATUS_FALSE);
  condition.set_observed_generation(view.generation);
  condition.set_reason(finding.reason);
  condition.set_message(finding.message);
  condition.set_last_transition_time(now);
  for (const v1::Condition& before : view.status->conditions()) {
    if (before.type() == finding.type && before.status() == condition.status()) {
      condition.set_last_transition_time(before.last_transition_time());
    }
  }
}

// That training diverged stays true of a job, however it goes on.
void AddDivergence(const JobReport& report,
                   const JobView& view,
                   const std::string& now,
                   Status& status) {
  const bool went_back =
      report.attempt > 1 &&
      view.job->spec().run_policy().on_divergence().action() != v1::OnDivergence::ACTION_CONTINUE;
  AddCondition(
      {kDiverged, true, went_back ? "WentBack" : kDiverged, report.divergence}, view, now, status);
}

void Remove(const char* type, Status& status) {
  auto& conditions = *status.mutable_conditions();
  conditions.erase(
      std::remove_if(conditions.begin(),
                     conditions.end(),
                     [type](const v1::Condition& condition) { return condition.type() == type; }),
      conditions.end());
}

void Keep(const char* type, const JobView& view, Status& status) {
  for (const v1::Condition& before : view.status->conditions()) {
    if (before.type() == type) {
      *status.add_conditions() = before;
    }
  }
}

void FillAttempt(const JobReport& report, Status& status) {
  status.set_attempt(static_cast<std::int64_t>(report.attempt));
  status.set_rate_factor(report.rate_factor);
  if (!report.divergence.empty()) {
    status.set_divergence(report.divergence);
  }
}

void FillRole(const JobReport& report,
              const PodViews& pods,
              Role role,
              const JobView& view,
              v1::RoleStatus& status) {
  const auto is_of_role = [role](const JobReport::MemberReport& member) {
    return member.id.role == role;
  };
  const auto is_ready = [&](const JobReport::MemberReport& member) {
    return is_of_role(member) && member.state == "Running" && !controller::IsFinal(report.phase);
  };
  const auto is_wanted = [&](const JobReport::MemberReport& member) {
    return is_of_role(member) && member.state != "Leaving";
  };
  const auto exists = [role](const std::shared_ptr<const PodView>& view_of_pod) {
    return view_of_pod->IsProcess() && view_of_pod->pod.process.id.role == role &&
           view_of_pod->pod.state != ObservedPod::State::kEnded;
  };
  status.set_desired(std::ranges::count_if(report.members, is_wanted));
  status.set_pods(std::ranges::count_if(pods, exists));
  status.set_ready(std::ranges::count_if(report.members, is_ready));
  status.set_selector(std::string(kJobUidLabel) + "=" + view.uid + "," + kRoleLabel + "=" +
                      std::string(controller::RoleName(role)));
}

// How a job stands, as its user sees it.
struct Standing {
  Phase phase = Phase::kPending;
  std::string message;
  std::string reason;  // of its conditions
};

// A job that has released its pods takes them again by itself, unless the user holds it.
Standing StandingOf(const JobReport& report, const JobView& view) {
  Standing standing{report.phase, report.message, std::string(controller::PhaseName(report.phase))};
  if (report.released && view.job->spec().run_policy().suspend()) {
    standing.message = kSuspendedByUser;
  } else if (report.released) {
    standing.phase = Phase::kPending;
    standing.reason = "StartDeadlineExceeded";
  } else if (!report.over_deadline.empty()) {
    standing.reason = kDeadlineExceeded;
  }
  return standing;
}

void AddConditions(const JobReport& report,
                   const Standing& standing,
                   const JobView& view,
                   const std::string& now,
                   Status& status) {
  const auto& [phase, message, reason] = standing;
  const bool running = phase == Phase::kRunning || phase == Phase::kEvaluating;
  const std::string open =
      "epoch " + std::to_string(report.epoch) + " of " + std::to_string(report.epochs);
  AddCondition(report.invalid ? InvalidData(report) : ValidityOf(view), view, now, status);
  AddCondition(
      {"Running", running, reason, phase == Phase::kRunning ? open : message}, view, now, status);
  const auto message_in = [&standing](Phase wanted) {
    return standing.phase == wanted ? standing.message : "";
  };
  AddCondition({"Suspended", phase == Phase::kSuspended, reason, message_in(Phase::kSuspended)},
               view,
               now,
               status);
  AddCondition({"Succeeded", phase == Phase::kSucceeded, reason, ""}, view, now, status);
  AddCondition(
      {"Failed", phase == Phase::kFailed, reason, message_in(Phase::kFailed)}, view, now, status);
  if (report.divergence.empty()) {
    Keep(kDiverged, view, status);
  } else {
    AddDivergence(report, view, now, status);
  }
}

// What a job is told to wait for may come of what its operator cannot do; why it ended does not.
bool GoesOn(const Status& status) {
  return status.phase() != Status::PHASE_SUCCEEDED && status.phase() != Status::PHASE_FAILED &&
         status.phase() != Status::PHASE_SUSPENDED;
}

}  // namespace

std::string_view PhaseText(const Status& status) {
  switch (status.phase()) {
    case Status::PHASE_PENDING:
      return "Pending";
    case Status::PHASE_STARTING:
      return "Starting";
    case Status::PHASE_RUNNING:
      return "Running";
    case Status::PHASE_EVALUATING:
      return "Evaluating";
    case Status::PHASE_SUCCEEDED:
      return "Succeeded";
    case Status::PHASE_FAILED:
      return "Failed";
    case Status::PHASE_SUSPENDED:
      return "Suspended";
    default:
      return "New";
  }
}

Status StatusOf(const JobReport& report,
                const PodViews& pods,
                const JobView& view,
                const std::string& now) {
  Status status;
  status.set_observed_generation(view.generation);
  const Standing standing = StandingOf(report, view);
  status.set_phase(PhaseOf(standing.phase));
  if (!standing.message.empty()) {
    status.set_message(standing.message);
  }
  AddConditions(report, standing, view, now, status);
  status.set_epoch(static_cast<std::int64_t>(report.epoch));
  status.set_epochs(static_cast<std::int64_t>(report.epochs));
  if (report.accuracy > 0) {
    status.set_accuracy(report.accuracy);
  }
  status.set_training_loss(report.training_loss);
  status.set_examples_per_second(std::llround(report.examples_per_second));
  status.set_examples(static_cast<std::int64_t>(report.counted_examples));
  if (report.total_examples > 0) {
    status.set_examples_per_epoch(static_cast<std::int64_t>(report.total_examples));
  }
  status.set_restarts(report.restarts);
  FillAttempt(report, status);
  v1::RolesStatus& roles = *status.mutable_roles();
  FillRole(report, pods, Role::kWorker, view, *roles.mutable_worker());
  FillRole(report, pods, Role::kDataServer, view, *roles.mutable_data_server());
  FillRole(report, pods, Role::kParameterServer, view, *roles.mutable_parameter_server());
  if (report.checkpoint != 0) {
    status.mutable_checkpoint()->set_snapshot(static_cast<std::int64_t>(report.checkpoint));
  }
  status.set_start_time(view.status->has_start_time() ? view.status->start_time() : now);
  if (report.phase == Phase::kSucceeded || report.phase == Phase::kFailed) {
    status.set_completion_time(view.status->has_completion_time() ? view.status->completion_time()
                                                                  : now);
  }
  status.set_output_claim(OutputClaimName(view.key.name, *view.job));
  return status;
}

void AddHistory(const controller::JobState& state, const JobReport& report, Status& status) {
  SetDuration(std::chrono::duration<double>(state.active).count(), *status.mutable_active());
  if (state.failovers == 0 && state.restores == 0) {
    return;
  }
  v1::RecoveryStatus& recovery = *status.mutable_recovery();
  recovery.set_failovers(static_cast<std::int64_t>(state.failovers));
  recovery.set_restores(static_cast<std::int64_t>(state.restores));
  if (report.last_failover) {
    const controller::FailoverTimes& times = report.last_failover->times;
    SetDuration(times.detect_seconds, *recovery.mutable_detect());
    SetDuration(times.replace_seconds, *recovery.mutable_replace());
    SetDuration(times.reconcile_seconds, *recovery.mutable_reconcile());
  }
}

Status SuspendedStatus(const JobView& view, const std::string& now) {
  Status status = *view.status;
  status.set_observed_generation(view.generation);
  status.set_phase(Status::PHASE_SUSPENDED);
  status.clear_last_report_time();
  status.clear_conditions();
  AddCondition(ValidityOf(view), view, now, status);
  AddCondition({"Suspended", true, "SuspendRequested", kSuspendedByUser}, view, now, status);
  Keep(kDiverged, view, status);
  Keep(kOutputWritable, view, status);
  return status;
}

Status WaitingStatus(const JobView& view, const std::string& now) {
  Status status = *view.status;
  status.set_observed_generation(view.generation);
  if (!status.has_phase()) {
    status.set_phase(Status::PHASE_PENDING);
    AddCondition(ValidityOf(view), view, now, status);
  }
  if (GoesOn(status)) {
    status.clear_message();  // of what the controller knew that is not there any more
  }
  return status;
}

void AddFailures(const std::vector<FailedWrites::Failure>& failures,
                 const JobView& view,
                 const std::string& now,
                 Status& status) {
  Remove(kWriteFailure, status);
  if (failures.empty()) {
    return;
  }
  std::string message;
  for (std::size_t i = 0; i < std::min(failures.size(), kMostFailures); ++i) {
    message += (i > 0 ? "\n" : "") + failures[i].Text();
  }
  if (failures.size() > kMostFailures) {
    message += "\nand " + std::to_string(failures.size() - kMostFailures) + " more";
  }
  AddCondition({kWriteFailure, true, failures.front().Reason(), message}, view, now, status);
  if (status.message().empty()) {
    status.set_message(failures.front().Text());
  } else if (GoesOn(status)) {
    status.set_message(failures.front().Text() + "; " + status.message());
  }
}

std::string WrittenOutputText(const JobView& view, const std::string& uid) {
  const std::string& path = view.job->spec().output().path();
  return "a pod has written to claim " + OutputClaimName(view.key.name, *view.job) + " (UID " +
         uid + ")" + (path.empty() ? "" : ", folder " + path);
}

std::string WrittenOutputText(const Status& status) {
  for (const v1::Condition& condition : status.conditions()) {
    if (condition.type() == kOutputWritable && condition.status() == v1::Condition::STATUS_TRUE) {
      return condition.message();
    }
  }
  return "";
}

void AddWrittenOutput(const std::string& text,
                      const JobView& view,
                      const std::string& now,
                      Status& status) {
  if (!text.empty()) {
    AddCondition({kOutputWritable, true, "Written", text}, view, now, status);
  }
}

void SetSecured(bool jobs_begin_with_tls,
                const JobView& view,
                const std::string& now,
                Status& status) {
  Remove(kSecured, status);
  const v1::SecurityStatus::Mode mode = status.security().mode();
  if (mode == v1::SecurityStatus::MODE_T_L_S) {
    AddCondition({kSecured, true, "TLS", ""}, view, now, status);
  } else if (mode == v1::SecurityStatus::MODE_PLAIN) {
    const char* const why =
        jobs_begin_with_tls
            ? "the job began without TLS, and goes on without until it ends"
            : "the operators run without TLS: who reaches a port is not asked who they are";
    AddCondition({kSecured, false, "TLSDisabled", why}, view, now, status);
  }
}

Status LostStatus(const JobView& view, const std::string& why, const std::string& now) {
  Status status = *view.status;
  status.set_observed_generation(view.generation);
  status.set_phase(Status::PHASE_FAILED);
  status.set_message(why);
  status.clear_last_report_time();
  status.clear_conditions();
  AddCondition(ValidityOf(view), view, now, status);
  AddCondition({"Running", false, "StateLost", ""}, view, now, status);
  AddCondition({"Failed", true, "StateLost", why}, view, now, status);
  Keep(kDiverged, view, status);
  Keep(kOutputWritable, view, status);
  if (!status.has_completion_time()) {
    status.set_completion_time(now);
  }
  return status;
}

Status InvalidStatus(const JobView& view, const std::string& now) {
  Status status;
  status.set_observed_generation(view.generation);
  status.set_phase(Status::PHASE_FAILED);
  status.set_message("the spec is not valid: " + view.problems);
  AddCondition(ValidityOf(view), view, now, status);
  return status;
}

}  // namespace adamant::kube
