#include "services/worker/core/learner/training_thread.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// The most events that one Advance emits.
constexpr std::size_t kEventsPerAdvance = 3;

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

TrainingThread::TrainingThread(Learner& learner,
                               Intake& intake,
                               std::size_t index,
                               const Clock& clock,
                               std::unique_ptr<ModelRunner> runner)
    : learner_(learner),
      intake_(intake),
      index_(index),
      clock_(clock),
      runner_(std::move(runner)),
      channel_(learner.channel(index)) {
  live_.reserve(learner.threads() * ThreadChannel::kAccumulators);
  channel_.MakeAccumulators(
      learner.plan(), learner.layout().shards().size(), learner.options().push_every);
}

absl::StatusOr<std::unique_ptr<TrainingThread>> TrainingThread::Create(Learner& learner,
                                                                       Intake& intake,
                                                                       std::size_t index,
                                                                       const Clock& clock) {
  ADAMANT_ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                           ModelRunner::Create(learner, intake, index));
  return std::unique_ptr<TrainingThread>(
      new TrainingThread(learner, intake, index, clock, std::move(runner)));
}

void TrainingThread::Run() {
  for (;;) {
    const std::uint32_t seen = learner_.notifier().Read();
    AddTo(channel_.statistics().turns, std::uint64_t{1});
    const Progress progress = Advance();
    AddTo(channel_.statistics().turns, std::uint64_t{1});
    if (progress == Progress::kStopped) {
      return;
    }
    if (progress == Progress::kBlocked) {
      const auto begin = clock_.Now();
      learner_.notifier().Wait(seen);
      const auto waited =
          std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.Now() - begin);
      AddTo(channel_.statistics().wait_nanoseconds[waits_for_],
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
  if (channel_.room() < kEventsPerAdvance) {
    return Block(ThreadStatistics::kForCommand);
  }
  const Commands& commands = learner_.commands();
  if (commands.stopping()) {
    return Stop();
  }
  const std::uint64_t reset = commands.reset_wanted();
  if (reset != reset_) {
    return Reset(reset);
  }
  if (awaits_reset_ || commands.renewed() < reset_) {
    return Block(ThreadStatistics::kForCommand);
  }
  if (fetch_point_ == 0 && learner_.guidance().eager && ApplyIfReady()) {
    return Progress::kWorked;
  }
  if (fetch_point_ != 0) {
    return MeetFetchPoint() ? Progress::kWorked : Block(ThreadStatistics::kForFetch);
  }
  const std::uint64_t flush = commands.flush_wanted();
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
  runner_->ResetState();
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
    intake_.Recycle(std::exchange(batch_, nullptr));
  }
  Emit({.kind = ThreadEvent::Kind::kStopped});
  stopped_ = true;
  return Progress::kStopped;
}

bool TrainingThread::ApplyIfReady() {
  if (learner_.fetch().BeginApply() != FetchSlot::Begun::kApply) {
    return false;
  }
  ApplyFetch();
  Emit({.kind = ThreadEvent::Kind::kApplied, .generation = learner_.fetch().id()});
  learner_.fetch().EndApply();
  learner_.notifier().Notify();
  return true;
}

bool TrainingThread::MeetFetchPoint() {
  if (!learner_.fetch_points().IsTurn(fetch_point_)) {
    return false;
  }
  switch (learner_.fetch().BeginApply()) {
    case FetchSlot::Begun::kNotYet:
      return false;
    case FetchSlot::Begun::kApply:
      ApplyFetch();
      learner_.fetch().EndApply();
      break;
    case FetchSlot::Begun::kNothing:
      break;
  }
  learner_.fetch().Request();
  Emit({.kind = ThreadEvent::Kind::kFetch});
  learner_.fetch_points().Pass(std::exchange(fetch_point_, 0));
  learner_.notifier().Notify();
  return true;
}

void TrainingThread::ApplyFetch() {
  if (accruing_ != nullptr && accruing_->steps > 0) {
    runner_->Settle();
    if (runner_->shared()) {
      accruing_->live.store(true, std::memory_order_release);
    }
  }
  learner_.ApplyFetch(runner_->scratch(), live_);
}

TrainingThread::Progress TrainingThread::WorkOnBatch() {
  if (accruing_ == nullptr) {
    accruing_ = learner_.TakeAccumulator(index_);
    if (accruing_ == nullptr) {
      return Block(ThreadStatistics::kForAccumulator);
    }
  }
  // Read before the queue: if it is set then, an empty queue means that nothing more is coming.
  const bool drained = intake_.drained();
  if (batch_ == nullptr) {
    batch_ = intake_.Take();
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
  } else if (!intake_.Closed(lease.batch.epoch)) {
    Train(*batch_);
  }
  intake_.Recycle(std::exchange(batch_, nullptr));
  return Progress::kWorked;
}

// Where others have trained for long, it asks, once, for the values of now, and keeps the batch.
bool TrainingThread::Outdated(const Batch& batch) {
  if (accruing_->steps > 0 || batch.job_examples == outdated_ ||
      !learner_.weight_age().Outdated(batch.job_examples)) {
    return false;
  }
  outdated_ = batch.job_examples;
  awaits_reset_ = true;
  learner_.weight_age().OnBatch(batch.job_examples);
  Emit({.kind = ThreadEvent::Kind::kOutdated});
  return true;
}

bool TrainingThread::Evaluate(const Batch& batch) {
  ThreadEvent event = {.kind = ThreadEvent::Kind::kHandBack,
                       .result = {.lease = batch.lease, .examples = batch.examples}};
  switch (learner_.evaluation().Begin(batch.snapshot)) {
    case EvaluationWeights::Begun::kNotYet:
      return false;
    case EvaluationWeights::Begun::kMissing:
      break;
    case EvaluationWeights::Begun::kReady: {
      runner_->Load(batch);
      const graph::StepResult result = runner_->Evaluate(batch, learner_.evaluation().values());
      learner_.evaluation().End();
      event.kind = ThreadEvent::Kind::kEvaluated;
      event.result.loss_sum = result.loss_sum;
      event.result.correct = static_cast<std::uint64_t>(result.correct);
      break;
    }
  }
  Emit(event);
  return true;
}

void TrainingThread::Train(const Batch& batch) {
  if (accruing_->steps == 0) {  // not before: it may have waited long for its first batch
    accruing_->push_every = learner_.PushEvery();
    accruing_->correction = learner_.guidance().correction;
  }
  runner_->Load(batch);
  const Clock::TimePoint begin = clock_.Now();
  const graph::StepResult result = runner_->Train(batch, *accruing_);
  Count(batch, result);
  NoteDuration(begin);
  if (const std::uint64_t point = learner_.CountStep(); point != 0) {
    fetch_point_ = point;
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

void TrainingThread::Count(const Batch& batch, const graph::StepResult& result) {
  const auto correct = static_cast<std::uint64_t>(result.correct);
  accruing_->results.push_back({.lease = batch.lease,
                                .examples = batch.examples,
                                .loss_sum = result.loss_sum,
                                .correct = correct});
  ++accruing_->steps;
  accruing_->progress.store(std::max(accruing_->progress.load(kRelaxed), batch.progress()),
                            kRelaxed);
  learner_.weight_age().OnBatch(batch.job_examples);
  if (runner_->shared()) {
    accruing_->live.store(true, std::memory_order_release);
  }
  ThreadStatistics& statistics = channel_.statistics();
  AddTo(statistics.steps, std::uint64_t{1});
  if (std::isfinite(result.loss_sum)) {
    AddTo(statistics.examples, std::uint64_t{batch.examples});
    AddTo(statistics.correct, correct);
    AddTo(statistics.loss_sum,
          std::min(result.loss_sum, kMostLoss * static_cast<double>(batch.examples)));
  }
  statistics.epoch.store(batch.lease.batch.epoch, kRelaxed);
}

void TrainingThread::HandOver(ThreadEvent::Kind kind) {
  if (accruing_ != nullptr && accruing_->steps > 0) {
    if (kind == ThreadEvent::Kind::kPush) {
      runner_->Flush();
      accruing_->live.store(true, std::memory_order_release);
    }
    Emit({.kind = kind, .accumulator = accruing_});
    accruing_ = nullptr;
  }
}

void TrainingThread::Emit(const ThreadEvent& event) {
  channel_.Emit(event);
  learner_.WakeLoop();
}

}  // namespace adamant::worker
