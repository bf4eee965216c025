#include "services/worker/core/training_thread.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// The most events that one Advance emits.
constexpr std::size_t kEventsPerAdvance = 3;

/// Batches that a job may have trained when a worker begins with the weights it has; and twice as
/// many for each worker since its last batch.
constexpr std::uint64_t kOutdatedBatches = 32;

/// A step that takes so many times the usual is one in which the process stood still.
constexpr double kStoodStill = 20;
constexpr double kDurationWeight = 0.05;

/// Of an example: a larger one would swallow all that is added to the sum later.
constexpr double kMostLoss = 1e6;

/// Adds to a total that only this thread writes.
template <class T>
void AddTo(std::atomic<T>& total, T value) {
  total.store(total.load(kRelaxed) + value, kRelaxed);
}

}  // namespace

TrainingThread::TrainingThread(Replica& replica, std::size_t index, const Clock& clock)
    : replica_(replica),
      clock_(clock),
      port_(*replica.ports[index]),
      state_(replica.plan.StateSize()),
      pending_(replica.options.share_every > 1 ? replica.plan.elements : 0),
      scratch_(UpdatePlan::kBlock),
      update_(replica.plan,
              {.weights = replica.weights.span(),
               .state = state_.span(),
               .pending = pending_.span(),
               .scratch = scratch_.span()},
              {.share_every = replica.options.share_every,
               .alone = replica.options.threads == 1,
               .start = static_cast<double>(index) / static_cast<double>(replica.options.threads)}),
      dead_units_(replica.dead_units, index, update_) {
  live_.reserve(replica.options.threads * ThreadPort::kAccumulators);
  for (std::size_t i = 0; i < ThreadPort::kAccumulators; ++i) {
    port_.pool.push_back(std::make_unique<Accumulator>(
        replica.plan, replica.layout.shards().size(), replica.options.push_every));
    port_.free.Push(port_.pool.back().get());
  }
}

absl::StatusOr<std::unique_ptr<TrainingThread>> TrainingThread::Create(Replica& replica,
                                                                       std::size_t index,
                                                                       const Clock& clock) {
  ADAMANT_ASSIGN_OR_RETURN(
      std::unique_ptr<graph::Context> context,
      graph::Context::Create(replica.graph,
                             static_cast<std::int64_t>(replica.options.batch_size),
                             replica.options.backend,
                             /*training=*/true));
  std::unique_ptr<TrainingThread> thread(new TrainingThread(replica, index, clock));
  thread->context_ = std::move(context);
  return thread;
}

std::string TrainingThread::Kernels() const { return graph::KernelList(context_->Nodes()); }

void TrainingThread::Run() {
  for (;;) {
    const std::uint32_t seen = replica_.bell.Read();
    AddTo(port_.statistics.turns, std::uint64_t{1});
    const Progress progress = Advance();
    AddTo(port_.statistics.turns, std::uint64_t{1});
    if (progress == Progress::kStopped) {
      return;
    }
    if (progress == Progress::kBlocked) {
      const auto begin = clock_.Now();
      replica_.bell.Wait(seen);
      const auto waited =
          std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.Now() - begin);
      AddTo(port_.statistics.wait_nanoseconds[waits_for_],
            static_cast<std::uint64_t>(waited.count()));
    }
  }
}

TrainingThread::Progress TrainingThread::Block(ThreadStatistics::Wait reason) {
  waits_for_ = reason;
  return Progress::kBlocked;
}

TrainingThread::Progress TrainingThread::Advance() {
  if (stopped_) {
    return Progress::kStopped;
  }
  if (port_.events.Room() < kEventsPerAdvance) {
    return Block(ThreadStatistics::kForCommand);
  }
  const Commands& commands = replica_.commands;
  if (commands.stopping.load(std::memory_order_acquire)) {
    return Stop();
  }
  const std::uint64_t reset = commands.reset_wanted.load(std::memory_order_acquire);
  if (reset != reset_) {
    return Reset(reset);
  }
  if (awaits_reset_ || commands.renewed.load(std::memory_order_acquire) < reset_) {
    return Block(ThreadStatistics::kForCommand);
  }
  if (fetch_point_ == 0 && replica_.guidance.Get().eager && ApplyIfReady()) {
    return Progress::kWorked;
  }
  if (fetch_point_ != 0) {
    return MeetFetchPoint() ? Progress::kWorked : Block(ThreadStatistics::kForFetch);
  }
  const std::uint64_t flush = commands.flush_wanted.load(std::memory_order_acquire);
  if (flush != flushed_) {
    HandOver(ThreadEvent::Kind::kPush);
    flushed_ = flush;
    Emit({.kind = ThreadEvent::Kind::kFlushed, .generation = flush});
    return Progress::kWorked;
  }
  return WorkOnBatch();
}

TrainingThread::Progress TrainingThread::Reset(std::uint64_t generation) {
  HandOver(ThreadEvent::Kind::kDiscard);
  std::ranges::fill(state_.span(), 0.0f);
  fetch_point_ = 0;
  awaits_reset_ = false;
  reset_ = generation;
  Emit({.kind = ThreadEvent::Kind::kReset, .generation = generation});
  return Progress::kWorked;
}

TrainingThread::Progress TrainingThread::Stop() {
  HandOver(ThreadEvent::Kind::kPush);
  if (batch_ != nullptr) {
    Emit({.kind = ThreadEvent::Kind::kHandBack, .result = {.lease = batch_->lease}});
    replica_.batches.Recycle(batch_);
    batch_ = nullptr;
  }
  Emit({.kind = ThreadEvent::Kind::kStopped});
  stopped_ = true;
  return Progress::kStopped;
}

bool TrainingThread::ApplyIfReady() {
  if (replica_.fetch.BeginApply() != FetchSlot::Begun::kApply) {
    return false;
  }
  ApplyFetch();
  Emit({.kind = ThreadEvent::Kind::kApplied,
        .generation = replica_.fetched.load(std::memory_order_acquire)});
  replica_.fetch.EndApply();
  replica_.bell.Ring();
  return true;
}

bool TrainingThread::MeetFetchPoint() {
  if (replica_.fetch_turn.load(std::memory_order_acquire) != fetch_point_ - 1) {
    return false;
  }
  switch (replica_.fetch.BeginApply()) {
    case FetchSlot::Begun::kNotYet:
      return false;
    case FetchSlot::Begun::kApply:
      ApplyFetch();
      replica_.fetch.EndApply();
      break;
    case FetchSlot::Begun::kNothing:
      break;
  }
  replica_.fetch.Request();
  Emit({.kind = ThreadEvent::Kind::kFetch});
  replica_.fetch_turn.store(fetch_point_, std::memory_order_release);
  fetch_point_ = 0;
  replica_.bell.Ring();
  return true;
}

void TrainingThread::ApplyFetch() {
  if (accruing_ != nullptr && accruing_->steps > 0) {
    update_.Settle();
    if (update_.shared()) {
      accruing_->live.store(true, std::memory_order_release);
    }
  }
  live_.clear();
  for (const auto& port : replica_.ports) {
    for (const auto& accumulator : port->pool) {
      if (accumulator->live.load(std::memory_order_acquire)) {
        live_.push_back(accumulator.get());
      }
    }
  }
  std::ranges::sort(live_, {}, [](const Accumulator* accumulator) {
    return accumulator->ordinal.load(kRelaxed);
  });
  replica_.look_ahead.factor = replica_.guidance.Get().look_ahead;
  ApplyFetched(replica_.plan,
               replica_.layout,
               live_,
               {.fetched = replica_.fetch.values(),
                .weights = replica_.weights.span(),
                .scratch = scratch_.span()},
               replica_.look_ahead);
}

TrainingThread::Progress TrainingThread::WorkOnBatch() {
  if (accruing_ == nullptr) {
    Accumulator* const* const free = port_.free.Front();
    if (free == nullptr) {
      return Block(ThreadStatistics::kForAccumulator);
    }
    accruing_ = *free;
    port_.free.Pop();
    accruing_->ordinal.store(replica_.ordinals.fetch_add(1, kRelaxed) + 1, kRelaxed);
  }
  // Read before the queue: if it is set then, an empty queue means that nothing more is coming.
  const bool drained = replica_.commands.drained.load(std::memory_order_acquire);
  if (batch_ == nullptr) {
    batch_ = replica_.batches.Take();
  }
  if (batch_ == nullptr) {
    if (drained && accruing_->steps > 0) {
      HandOver(ThreadEvent::Kind::kPush);
      return Progress::kWorked;
    }
    return Block(ThreadStatistics::kForBatch);
  }
  const Lease& lease = batch_->lease;
  if (lease.batch.kind == WorkKind::kEvaluate) {
    if (!Evaluate(*batch_)) {
      return Block(ThreadStatistics::kForFetch);
    }
  } else if (Outdated(*batch_)) {
    return Progress::kWorked;  // the exchange loop answers with a reset, however long it takes
  } else if (lease.batch.epoch > replica_.commands.closed_epoch.load(std::memory_order_acquire)) {
    Train(*batch_);
  }
  replica_.batches.Recycle(batch_);
  batch_ = nullptr;
  replica_.slot_bell.Ring();
  return Progress::kWorked;
}

// Others may have trained for long since this worker's last batch, or before its first, as when one
// worker trains alone first: then it asks, once, for the values of now, and keeps the batch.
bool TrainingThread::Outdated(const Batch& batch) {
  const std::uint64_t workers = replica_.workers.load(std::memory_order_acquire);
  const std::uint64_t last = replica_.job_examples.load(kRelaxed);
  const std::uint64_t behind = batch.job_examples - std::min(batch.job_examples, last);
  const std::uint64_t batches = kOutdatedBatches * (last > 0 ? 2 * workers : 1);
  if (workers <= 1 || accruing_->steps > 0 || batch.job_examples == outdated_ ||
      behind < batches * replica_.options.batch_size) {
    return false;
  }
  outdated_ = batch.job_examples;
  awaits_reset_ = true;
  replica_.job_examples.store(batch.job_examples, kRelaxed);
  Emit({.kind = ThreadEvent::Kind::kOutdated});
  return true;
}

bool TrainingThread::Evaluate(Batch& batch) {
  ThreadEvent event = {.kind = ThreadEvent::Kind::kHandBack,
                       .result = {.lease = batch.lease, .examples = batch.examples}};
  switch (replica_.evaluation.Begin(batch.snapshot)) {
    case EvaluationWeights::Begun::kNotYet:
      return false;
    case EvaluationWeights::Begun::kMissing:
      break;
    case EvaluationWeights::Begun::kReady: {
      FillInput(batch);
      const graph::StepResult result =
          context_->Evaluate(batch.examples, replica_.evaluation.values());
      replica_.evaluation.End();
      event.kind = ThreadEvent::Kind::kEvaluated;
      event.result.loss_sum = result.loss_sum;
      event.result.correct = static_cast<std::uint64_t>(result.correct);
      break;
    }
  }
  Emit(event);
  return true;
}

void TrainingThread::Train(Batch& batch) {
  if (accruing_->steps == 0) {  // not before: it may have waited long for its first batch
    accruing_->push_every = replica_.PushEvery();
    accruing_->correction = replica_.guidance.Get().correction;
  }
  FillInput(batch);
  const Lease& lease = batch.lease;
  const Clock::TimePoint begin = clock_.Now();
  update_.Begin(batch.progress(), *accruing_);
  const graph::StepResult result = context_->Train(
      batch.examples,
      replica_.weights.span(),
      dead_units_.Begin(),
      MixSeed(replica_.options.seed, lease.batch.epoch, lease.batch.part, lease.batch.index));
  dead_units_.End();
  if (!ADAMANT_FAILPOINT_STATUS("train/step").ok()) {
    replica_.weights.span().front() = std::numeric_limits<float>::quiet_NaN();
  }
  KeepRows(batch.examples);
  Count(batch, result);
  NoteDuration(begin);
  const std::uint64_t step = replica_.steps.fetch_add(1, kRelaxed) + 1;
  std::uint64_t fetch_at = replica_.fetch_at.load(kRelaxed);
  if (fetch_at > 0 && step >= fetch_at &&
      replica_.fetch_at.compare_exchange_strong(
          fetch_at, fetch_at + replica_.FetchEvery() * replica_.options.threads, kRelaxed)) {
    fetch_point_ = replica_.fetch_points.fetch_add(1, kRelaxed) + 1;
  }
  if (accruing_->steps == accruing_->push_every) {
    HandOver(ThreadEvent::Kind::kPush);
  }
}

// A step that took longer than others by far: the process stood still, and the others did not.
void TrainingThread::NoteDuration(Clock::TimePoint begin) {
  const Clock::Duration took = clock_.Now() - begin;
  const double seconds = std::chrono::duration<double>(took).count();
  if (step_seconds_ > 0 && seconds > kStoodStill * step_seconds_) {
    accruing_->stood_still = std::max(accruing_->stood_still, took);
  } else {
    step_seconds_ += (step_seconds_ > 0 ? kDurationWeight : 1) * (seconds - step_seconds_);
  }
}

void TrainingThread::KeepRows(std::uint64_t examples) {
  for (std::size_t i = 0; i < replica_.plan.tensors.size(); ++i) {
    const TensorPlan& tensor = replica_.plan.tensors[i];
    if (tensor.activations) {
      const auto operands = context_->OperandsOf(static_cast<int>(i));
      Accumulator::Rows& rows = accruing_->rows[i];
      std::ranges::copy(
          operands.activations,
          rows.activations.span().subspan(accruing_->filled_rows * tensor.inputs).begin());
      std::ranges::copy(
          operands.errors,
          rows.errors.span().subspan(accruing_->filled_rows * tensor.outputs).begin());
    }
  }
  accruing_->filled_rows += examples;
}

void TrainingThread::Count(const Batch& batch, const graph::StepResult& result) {
  const auto correct = static_cast<std::uint64_t>(result.correct);
  accruing_->results.push_back({.lease = batch.lease,
                                .examples = batch.examples,
                                .loss_sum = result.loss_sum,
                                .correct = correct});
  ++accruing_->steps;
  accruing_->progress.store(std::max(accruing_->progress.load(kRelaxed), batch.progress()),
                            kRelaxed);
  replica_.job_examples.store(batch.job_examples, kRelaxed);
  if (update_.shared()) {
    accruing_->live.store(true, std::memory_order_release);
  }
  ThreadStatistics& statistics = port_.statistics;
  AddTo(statistics.steps, std::uint64_t{1});
  if (std::isfinite(result.loss_sum)) {
    AddTo(statistics.examples, std::uint64_t{batch.examples});
    AddTo(statistics.correct, correct);
    AddTo(statistics.loss_sum,
          std::min(result.loss_sum, kMostLoss * static_cast<double>(batch.examples)));
  }
  statistics.epoch.store(batch.lease.batch.epoch, kRelaxed);
}

void TrainingThread::FillInput(const Batch& batch) {
  const Normalisation& normalisation = replica_.normalisation();
  const std::size_t channels = normalisation.mean.size();
  const std::size_t plane = replica_.example_bytes() / channels;
  const std::uint8_t* pixel = batch.pixels.data();
  float* value = context_->input().data();
  for (std::size_t i = 0; i < batch.examples * channels; ++i) {
    const float mean = normalisation.mean[i % channels];
    const float deviation = normalisation.deviation[i % channels];
    for (std::size_t j = 0; j < plane; ++j) {
      value[j] = (static_cast<float>(pixel[j]) - mean) / deviation;
    }
    pixel += plane;
    value += plane;
  }
  std::copy_n(batch.labels.begin(), batch.examples, context_->labels().begin());
}

void TrainingThread::HandOver(ThreadEvent::Kind kind) {
  if (accruing_ != nullptr && accruing_->steps > 0) {
    if (kind == ThreadEvent::Kind::kPush) {
      update_.Flush();
      accruing_->live.store(true, std::memory_order_release);
    }
    Emit({.kind = kind, .accumulator = accruing_});
    accruing_ = nullptr;
  }
}

void TrainingThread::Emit(const ThreadEvent& event) {
  ADAMANT_CHECK(port_.events.Push(event), "room was looked for");
  replica_.wake_loop();
}

}  // namespace adamant::worker
