#include "operator/core/job/job_report.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "operator/core/diagnosis/recovery.h"
#include "operator/core/training/staleness_summary.h"

namespace adamant::controller {
namespace {

// `awaits`: no process of the slot has been asked for, as others are waited for.
std::string StateName(const ProcessTable::Slot& slot, bool awaits) {
  switch (slot.liveness) {
    case ProcessTable::Liveness::kAbsent:
      return awaits ? "Waiting" : "Left";
    case ProcessTable::Liveness::kStarting:
      return "Starting";
    case ProcessTable::Liveness::kRunning:
      return slot.leaving ? "Leaving" : "Running";
    case ProcessTable::Liveness::kWaiting:
      return "Restarting";
  }
  return "Unknown";
}

// Whoever is heard gets the whole time to be heard again (SilenceWatch).
double SilentSeconds(const ProcessTable::Slot& slot,
                     std::chrono::milliseconds silence_timeout,
                     Clock::TimePoint now) {
  if (slot.liveness != ProcessTable::Liveness::kRunning || !slot.started || slot.leaving) {
    return 0;
  }
  const std::chrono::duration<double> silent = now - (slot.deadline - silence_timeout);
  return std::max(0.0, silent.count());
}

}  // namespace

JobReport Reporter::Report(const Moment& moment) const {
  JobReport report{
      .name = settings_.name,
      .term = state_.term,
      .phase = state_.phase,
      .epoch = state_.epoch,
      .epochs = std::max<std::uint64_t>(settings_.epochs, state_.epoch),  // one that is open ends
      .counted_examples = std::max(meter_.counted(), state_.row.counted),
      .total_examples = std::max(meter_.total(), state_.row.counted + state_.row.left),
      .examples_per_second = meter_.ExamplesPerSecond(moment.now),
      .training_loss = LastLoss(),
      .accuracy = state_.accuracy,
      .restarts = state_.restarts,
      .message = state_.message,
      .invalid = state_.invalid,
      .released = state_.released,
      .end = state_.end,
      .members = {}};
  if (state_.phase == Phase::kFailed) {
    report.over_deadline = Deadlines(settings_, state_).Over();
  }
  AddMembers(report, moment.now);
  AddBuckets(report, moment.handles && !IsFinal(state_.phase));
  report.goes_on =
      moment.goes_on && state_.phase == Phase::kStarting && placement_.servers().KnowsWhoRuns();
  if (state_.phase == Phase::kStarting) {
    report.disk_wait = placement_.WaitsForDisks();
  }
  report.last_failover = placement_.failovers().Last(moment.now);
  report.checkpoint = HasCheckpoint(state_) ? state_.checkpoint.snapshot : 0;
  report.checkpoint_held_seconds = std::chrono::duration<double>(state_.checkpoint.held).count();
  AddRecovery(report);
  const std::vector<std::uint64_t>& metered = meter_.batches_of_others();
  report.batches_of_others =
      Summarise(metered.empty() ? state_.row.batches_of_others : metered).mean;
  return report;
}

void Reporter::AddMembers(JobReport& report, Clock::TimePoint now) const {
  const Load load(placement_.configurations().all(), settings_.parameter_servers);
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (processes_.IsSurplus(slot.id) && slot.liveness == ProcessTable::Liveness::kAbsent) {
      continue;
    }
    const bool never_began = processes_.GenerationOf(slot.id) == 0;
    const bool awaits = never_began || (!IsFinal(state_.phase) && !slot.has_run);
    const bool holds_buckets = slot.id.role == Role::kParameterServer;
    report.members.push_back(
        {.id = slot.id,
         .incarnation = processes_.IncarnationOf(slot.id),
         .state = StateName(slot, awaits),
         .metrics_address = slot.metrics_address,
         .buckets = holds_buckets ? load.primaries[slot.id.slot] : 0,
         .copies = holds_buckets ? load.copies[slot.id.slot] : 0,
         .oldest_unflushed_seconds =
             holds_buckets ? placement_.servers().OldestUnflushed(slot.id.slot) : 0,
         .address = slot.address,
         .alarm = alarms_.AlarmOf(slot.id),
         .silent_seconds = SilentSeconds(slot, settings_.silence_timeout, now)});
    if (report.message.empty() && !slot.loading.empty()) {
      report.message = ToString(slot.id) + ": " + slot.loading;
    }
  }
}

void Reporter::AddBuckets(JobReport& report, bool live) const {
  for (BucketId bucket = 0; bucket < placement_.configurations().size(); ++bucket) {
    const auto live_copies =
        live ? std::optional(placement_.copies().LiveCopiesOf(bucket)) : std::nullopt;
    report.buckets.push_back(placement_.failovers().ReportOf(bucket, live_copies));
    report.bucket_summary.Add(report.buckets.back());
  }
}

void Reporter::AddRecovery(JobReport& report) const {
  report.attempt = state_.recovery.attempt;
  report.rate_factor = state_.recovery.rate_factor;
  report.divergence = state_.recovery.divergence;
  report.undone_updates = state_.recovery.undone_updates;
  report.undone_examples = state_.recovery.undone_examples;
  report.updates_lost = state_.updates_lost + state_.unrecorded_losses;
  report.updates_awaited = state_.rolled_back.lost == 0 ? state_.rolled_back.updates : 0;
}

// A controller that has just begun, or looks at a job that has ended, has metered nothing.
double Reporter::LastLoss() const {
  const double recent = meter_.RecentLoss();
  const double loss = recent == 0 && state_.row.is_measured() ? state_.row.training_loss : recent;
  return std::isfinite(loss) ? loss : 0;  // states of before may hold such a one
}

}  // namespace adamant::controller
