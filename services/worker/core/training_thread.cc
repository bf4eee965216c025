#include "services/worker/core/training_thread.h"

#include <algorithm>
#include <chrono>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// The most events that one Advance emits.
constexpr std::size_t kEventsPerAdvance = 3;

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
      update_(
          replica.plan,
          {.weights = replica.weights.span(),
           .state = state_.span(),
           .pending = pending_.span(),
           .scratch = scratch_.span()},
          {.share_every = replica.options.share_every,
           .push_every = replica.options.push_every,
           .alone = replica.options.threads == 1,
           .start = static_cast<double>(index) / static_cast<double>(replica.options.threads)}) {
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
  if (commands.renewed.load(std::memory_order_acquire) < reset_) {
    return Block(ThreadStatistics::kForCommand);
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
  ApplyFetched(replica_.plan,
               replica_.layout,
               live_,
               scratch_.span(),
               replica_.fetch.values(),
               replica_.weights.span());
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
  if (lease.kind == WorkKind::kEvaluate) {
    if (!Evaluate(*batch_)) {
      return Block(ThreadStatistics::kForFetch);
    }
  } else if (lease.epoch > replica_.commands.closed_epoch.load(std::memory_order_acquire)) {
    Train(*batch_);
  }
  replica_.batches.Recycle(batch_);
  batch_ = nullptr;
  replica_.slot_bell.Ring();
  return Progress::kWorked;
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
  FillInput(batch);
  const Lease& lease = batch.lease;
  update_.Begin(batch.job_examples, *accruing_);
  const graph::StepResult result =
      context_->Train(batch.examples,
                      replica_.weights.span(),
                      update_,
                      MixSeed(replica_.options.seed, lease.epoch, lease.part, lease.index));
  KeepRows(batch.examples);
  Count(batch, result);
  const std::uint64_t step = replica_.steps.fetch_add(1, kRelaxed) + 1;
  const std::uint64_t fetch_every = replica_.options.fetch_every * replica_.options.threads;
  if (fetch_every > 0 && step % fetch_every == 0) {
    fetch_point_ = step / fetch_every;
  }
  if (accruing_->steps == replica_.options.push_every) {
    HandOver(ThreadEvent::Kind::kPush);
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
  accruing_->job_examples.store(
      std::max(accruing_->job_examples.load(kRelaxed), batch.job_examples), kRelaxed);
  if (update_.shared()) {
    accruing_->live.store(true, std::memory_order_release);
  }
  ThreadStatistics& statistics = port_.statistics;
  AddTo(statistics.examples, std::uint64_t{batch.examples});
  AddTo(statistics.steps, std::uint64_t{1});
  AddTo(statistics.correct, correct);
  AddTo(statistics.loss_sum, result.loss_sum);
  statistics.epoch.store(batch.lease.epoch, kRelaxed);
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
