#include "services/parameter_server/rpc/storage/storage_loop.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/parallel_for.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::steady_clock;

/// Longest sleep, for clocks that do not run like the one that waits.
constexpr Clock::Duration kLongestWait = std::chrono::seconds(1);

/// Two for each core, as one waits for the disk while another checks what it has read; and no more
/// than the fastest disks reward.
constexpr unsigned kMaxReadingThreads = 16;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

}  // namespace

unsigned ReadingThreads() {
  return std::clamp(2 * std::thread::hardware_concurrency(), 2u, kMaxReadingThreads);
}

StorageLoop::StorageLoop(service::ControllerLink& controller, metrics::Registry& registry)
    : controller_(controller),
      flushes_(registry.AddCounter("adamant_parameter_server_flushes_total",
                                   "Flushes of changed shards that succeeded.")),
      flushed_bytes_(registry.AddCounter("adamant_parameter_server_flushed_bytes_total",
                                         "Bytes of shards written by flushes.")),
      folded_(registry.AddCounter("adamant_parameter_server_folded_updates_total",
                                  "Updates that shared a write with an earlier one.")),
      scrubbed_bytes_(registry.AddCounter("adamant_parameter_server_scrubbed_bytes_total",
                                          "Stored bytes read again in the background and found "
                                          "to be good.")),
      damaged_(registry.AddCounter("adamant_parameter_server_damaged_values_total",
                                   "Stored values found damaged in the background, or in a "
                                   "checkpoint that was read.")),
      flush_seconds_(registry.AddHistogram("adamant_parameter_server_flush_seconds",
                                           "Time of a flush.",
                                           metrics::ExponentialBounds(1e-3, 2, 14))),
      snapshot_seconds_(registry.AddHistogram("adamant_parameter_server_snapshot_seconds",
                                              "Time to copy and persist a snapshot.",
                                              metrics::ExponentialBounds(1e-3, 2, 14))) {}

StorageLoop::~StorageLoop() { Stop(); }

void StorageLoop::Start(ParameterServer& core,
                        const Clock& clock,
                        std::function<void()> on_stored) {
  thread_ = std::jthread([this, &core, &clock, on_stored = std::move(on_stored)] {
    if (const absl::Status status = Run(core, clock, on_stored); !status.ok()) {
      controller_.Fail(status, false);
    }
  });
}

void StorageLoop::Want() {
  const MutexLock lock(mutex_);
  wanted_ = true;
  changed_.NotifyOne();
}

void StorageLoop::Take(TakeSnapshot request) {
  const MutexLock lock(mutex_);
  work_.snapshots.push_back(std::move(request));
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

absl::Status StorageLoop::Run(ParameterServer& core,
                              const Clock& clock,
                              const std::function<void()>& on_stored) {
  const ParallelFor parallel_for = OnThreads(ReadingThreads());
  absl::Status read = core.ReadStored(parallel_for);
  while (absl::IsResourceExhausted(read)) {
    LogAlarm(core);
    if (StopsWithin(kLongestWait)) {
      return absl::OkStatus();
    }
    read = core.ReadStored(parallel_for);
  }
  ADAMANT_RETURN_IF_ERROR(read);
  on_stored();
  while (true) {
    const Work work = Next(core, clock);
    turns_.fetch_add(1, std::memory_order_relaxed);
    const absl::Status done = Do(work, core, clock);
    turns_.fetch_add(1, std::memory_order_relaxed);
    CountScrubbed(core);
    ADAMANT_RETURN_IF_ERROR(done);
    LogAlarm(core);
    if (work.stop) {
      return absl::OkStatus();
    }
  }
}

bool StorageLoop::StopsWithin(Clock::Duration time) {
  const MutexLock lock(mutex_);
  if (!work_.stop) {
    changed_.WaitFor(mutex_, time);
  }
  return work_.stop;
}

StorageLoop::Work StorageLoop::Next(ParameterServer& core, const Clock& clock) {
  while (true) {
    // Without this lock, because the core calls Want under its own.
    const Clock::TimePoint due =
        std::min({core.flusher().DueAt(), core.StorageDueAt(), core.scrubber().DueAt()});
    const Clock::TimePoint now = clock.Now();
    const MutexLock lock(mutex_);
    if (work_.stop || !work_.snapshots.empty() || std::exchange(wanted_, false) || due <= now) {
      Work work{.stop = work_.stop};
      std::swap(work.snapshots, work_.snapshots);
      return work;
    }
    changed_.WaitFor(mutex_, std::min(due - now, kLongestWait));
  }
}

absl::Status StorageLoop::Do(const Work& work, ParameterServer& core, const Clock& clock) {
  ADAMANT_RETURN_IF_ERROR(core.DoStorage());
  for (const TakeSnapshot& snapshot : work.snapshots) {
    ADAMANT_RETURN_IF_ERROR(TakeOne(snapshot, core));
  }
  if (core.scrubber().DueAt() <= clock.Now()) {
    core.Scrub();
  }
  const bool due = core.flusher().DueAt() <= clock.Now();
  return due || work.stop ? Flush(core) : absl::OkStatus();
}

void StorageLoop::CountScrubbed(const ParameterServer& core) {
  const ScrubTotals before = std::exchange(scrubbed_, core.scrubber().totals());
  scrubbed_bytes_.Increment(static_cast<double>(scrubbed_.bytes - before.bytes));
  damaged_.Increment(static_cast<double>(scrubbed_.damaged - before.damaged));
  if (scrubbed_.damaged == before.damaged) {
    return;
  }
  const std::vector<std::string> damages = core.scrubber().damages();
  for (; damages_ < damages.size(); ++damages_) {
    LogError("what is stored is damaged", {{"damage", damages[damages_]}});
  }
}

absl::Status StorageLoop::TakeOne(const TakeSnapshot& request, ParameterServer& core) {
  const auto start = steady_clock::now();
  const auto taken = core.TakeSnapshot(request);
  if (absl::IsDataLoss(taken.status())) {
    return taken.status();
  }
  snapshot_seconds_.Observe(SecondsSince(start));
  protocol::SnapshotTaken answer{.snapshot = request.snapshot, .ok = taken.ok()};
  if (taken.ok()) {
    answer.buckets = *taken;
  } else {
    answer.error = std::string(taken.status().message());
    answer.disk_full = absl::IsResourceExhausted(taken.status());
    const bool waits = absl::IsUnavailable(taken.status());  // for a bucket that is not served yet
    (waits ? LogInfo : LogError)("snapshot failed",
                                 {{"snapshot", request.snapshot}, {"error", answer.error}});
  }
  ADAMANT_FAILPOINT("snapshot/answer");
  controller_.Send(answer);
  return absl::OkStatus();
}

absl::Status StorageLoop::Flush(ParameterServer& core) {
  const FlushTotals before = core.flusher().totals();
  const auto start = steady_clock::now();
  ADAMANT_RETURN_IF_ERROR(core.Flush());
  const FlushTotals after = core.flusher().totals();
  if (after.flushes > before.flushes) {
    flush_seconds_.Observe(SecondsSince(start));
    flushes_.Increment();
    flushed_bytes_.Increment(static_cast<double>(after.bytes - before.bytes));
    folded_.Increment(static_cast<double>(after.folded - before.folded));
  }
  return absl::OkStatus();
}

void StorageLoop::LogAlarm(const ParameterServer& core) {
  const std::string alarm = core.alarm();
  if (alarm.empty() == alarm_.empty()) {
    return;
  }
  alarm_ = alarm;
  if (alarm.empty()) {
    LogInfo("storing again");
  } else {
    LogError("storing stopped, serving goes on", {{"alarm", alarm}});
  }
}

}  // namespace adamant::parameter_server
