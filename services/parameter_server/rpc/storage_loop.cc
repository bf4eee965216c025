#include "services/parameter_server/rpc/storage_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::steady_clock;

/// Longest sleep, for clocks that do not run like the one that waits.
constexpr Clock::Duration kLongestWait = std::chrono::seconds(1);

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

}  // namespace

StorageLoop::StorageLoop(service::ControllerLink& controller, metrics::Registry& registry)
    : controller_(controller),
      flushes_(registry.AddCounter("adamant_parameter_server_flushes_total",
                                   "Flushes of changed shards that succeeded.")),
      flushed_bytes_(registry.AddCounter("adamant_parameter_server_flushed_bytes_total",
                                         "Bytes of shards written by flushes.")),
      folded_(registry.AddCounter("adamant_parameter_server_folded_updates_total",
                                  "Updates that shared a write with an earlier one.")),
      flush_seconds_(registry.AddHistogram("adamant_parameter_server_flush_seconds",
                                           "Time of a flush.",
                                           metrics::ExponentialBounds(1e-3, 2, 14))),
      snapshot_seconds_(registry.AddHistogram("adamant_parameter_server_snapshot_seconds",
                                              "Time to copy and persist a snapshot.",
                                              metrics::ExponentialBounds(1e-3, 2, 14))) {}

StorageLoop::~StorageLoop() { Stop(); }

void StorageLoop::Start(ParameterServer& core, const Clock& clock) {
  thread_ = std::jthread([this, &core, &clock] { Run(core, clock); });
}

void StorageLoop::Prepare() {
  const MutexLock lock(mutex_);
  work_.prepare = true;
  changed_.NotifyOne();
}

void StorageLoop::Take(Snapshot snapshot) {
  const MutexLock lock(mutex_);
  work_.snapshots.push_back(std::move(snapshot));
  changed_.NotifyOne();
}

void StorageLoop::DueChanged() {
  // The lock orders this after a look at the time that is in progress.
  const MutexLock lock(mutex_);
  changed_.NotifyOne();
}

void StorageLoop::Stop() {
  {
    const MutexLock lock(mutex_);
    work_.stop = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void StorageLoop::Run(ParameterServer& core, const Clock& clock) {
  while (true) {
    const Work work = Next(core, clock);
    if (const absl::Status status = Do(work, core, clock); !status.ok()) {
      controller_.Fail(status, false);
      return;
    }
    if (work.stop) {
      return;
    }
  }
}

StorageLoop::Work StorageLoop::Next(ParameterServer& core, const Clock& clock) {
  const MutexLock lock(mutex_);
  while (!work_.stop && !work_.prepare && work_.snapshots.empty()) {
    const Clock::TimePoint now = clock.Now();
    const Clock::TimePoint due = core.flusher().DueAt();
    if (due <= now) {
      break;
    }
    changed_.WaitFor(mutex_, std::min(due - now, kLongestWait));
  }
  Work work{.stop = work_.stop};
  std::swap(work.prepare, work_.prepare);
  std::swap(work.snapshots, work_.snapshots);
  return work;
}

absl::Status StorageLoop::Do(const Work& work, ParameterServer& core, const Clock& clock) {
  if (work.prepare) {
    ADAMANT_RETURN_IF_ERROR(core.Prepare());
    Report(core);
  }
  for (const Snapshot& snapshot : work.snapshots) {
    ADAMANT_RETURN_IF_ERROR(TakeOne(snapshot, core));
  }
  const bool due = core.flusher().DueAt() <= clock.Now();
  return due || work.stop ? Flush(core) : absl::OkStatus();
}

void StorageLoop::Report(const ParameterServer& core) {
  v1::MemberMessage message;
  for (const BucketReport& report : core.Reports()) {
    v1::BucketState& state = *message.mutable_buckets_ready()->add_buckets();
    state.set_bucket(report.bucket);
    state.set_epoch(report.epoch);
    state.set_lost(report.lost);
    state.set_detail(report.detail);
  }
  if (message.has_buckets_ready()) {
    controller_.Send(message);
  }
}

absl::Status StorageLoop::TakeOne(const Snapshot& snapshot, ParameterServer& core) {
  const auto start = steady_clock::now();
  const absl::Status status = core.TakeSnapshot(snapshot.id, snapshot.keep_from, snapshot.keep);
  if (absl::IsDataLoss(status)) {
    return status;
  }
  snapshot_seconds_.Observe(SecondsSince(start));
  if (!status.ok()) {
    LogError("snapshot failed",
             {{"snapshot", snapshot.id}, {"error", std::string(status.message())}});
  }
  v1::MemberMessage message;
  message.mutable_snapshot_taken()->set_snapshot(snapshot.id);
  message.mutable_snapshot_taken()->set_ok(status.ok());
  message.mutable_snapshot_taken()->set_error(std::string(status.message()));
  controller_.Send(message);
  return absl::OkStatus();
}

absl::Status StorageLoop::Flush(ParameterServer& core) {
  Flusher& flusher = core.flusher();
  const FlushTotals before = flusher.totals();
  const bool was_well = flusher.alarm().empty();
  const auto start = steady_clock::now();
  ADAMANT_RETURN_IF_ERROR(flusher.Flush());
  const FlushTotals after = flusher.totals();
  const std::string alarm = flusher.alarm();
  if (!alarm.empty() && was_well) {
    LogError("flushing stopped, serving goes on", {{"alarm", alarm}});
  } else if (alarm.empty() && !was_well) {
    LogInfo("flushing again");
  }
  if (after.flushes > before.flushes) {
    flush_seconds_.Observe(SecondsSince(start));
    flushes_.Increment();
    flushed_bytes_.Increment(static_cast<double>(after.bytes - before.bytes));
    folded_.Increment(static_cast<double>(after.folded - before.folded));
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
