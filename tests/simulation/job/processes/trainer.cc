#include "tests/simulation/job/processes/trainer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace adamant::simulation {
namespace {

constexpr std::size_t kEventsPerAdvance = 3;

}  // namespace

using worker::ThreadEvent;

Trainer::Trainer(World& world,
                 worker::Worker& core,
                 std::size_t index,
                 WorkerId worker,
                 LifePtr life,
                 std::function<void()> after)
    : world_(world),
      learner_(core.learner()),
      intake_(core.intake()),
      index_(index),
      worker_(worker),
      life_(std::move(life)),
      after_(std::move(after)),
      channel_(learner_.channel(index)),
      scratch_(worker::UpdatePlan::kBlock),
      seen_(learner_.notifier().Read() - 1) {
  channel_.MakeAccumulators(
      learner_.plan(), learner_.layout().shards().size(), learner_.options().push_every);
}

void Trainer::Wake() {
  if (blocked_ && !busy_ && !stopped_ && learner_.notifier().Read() != seen_) {
    blocked_ = false;
    world_.scheduler.After(
        world_.scheduler.Random(microseconds(1), microseconds(200)), life_, [this] { Run(); });
  }
}

void Trainer::Run() {
  Progress progress = Progress::kWorked;
  while (progress == Progress::kWorked) {
    seen_ = learner_.notifier().Read();
    progress = Advance();
  }
  blocked_ = progress == Progress::kBlocked;
  after_();
}

// The order of TrainingThread::Advance.
Trainer::Progress Trainer::Advance() {
  if (stopped_) {
    return Progress::kStopped;
  }
  if (channel_.room() < kEventsPerAdvance) {
    return Progress::kBlocked;
  }
  const worker::Commands& commands = learner_.commands();
  if (commands.stopping()) {
    return Stop();
  }
  if (const std::uint64_t reset = commands.reset_wanted(); reset != reset_) {
    return Reset(reset);
  }
  if (commands.renewed() < reset_) {
    return Progress::kBlocked;
  }
  if (fetch_point_ != 0) {
    return MeetFetchPoint() ? Progress::kWorked : Progress::kBlocked;
  }
  if (const std::uint64_t flush = commands.flush_wanted(); flush != flushed_) {
    HandOver(ThreadEvent::Kind::kPush);
    flushed_ = flush;
    Emit({.kind = ThreadEvent::Kind::kFlushed, .generation = flush});
    return Progress::kWorked;
  }
  return WorkOnBatch();
}

Trainer::Progress Trainer::Reset(std::uint64_t generation) {
  HandOver(ThreadEvent::Kind::kDiscard);
  fetch_point_ = 0;
  reset_ = generation;
  Emit({.kind = ThreadEvent::Kind::kReset, .generation = generation});
  return Progress::kWorked;
}

Trainer::Progress Trainer::Stop() {
  HandOver(ThreadEvent::Kind::kPush);
  if (batch_ != nullptr) {
    Emit({.kind = ThreadEvent::Kind::kHandBack, .result = {.lease = batch_->lease}});
    intake_.Recycle(std::exchange(batch_, nullptr));
  }
  Emit({.kind = ThreadEvent::Kind::kStopped});
  stopped_ = true;
  return Progress::kStopped;
}

bool Trainer::MeetFetchPoint() {
  if (!learner_.fetch_points().IsTurn(fetch_point_)) {
    return false;
  }
  switch (learner_.fetch().BeginApply()) {
    case worker::FetchSlot::Begun::kNotYet:
      return false;
    case worker::FetchSlot::Begun::kApply:
      ApplyFetch();
      learner_.fetch().EndApply();
      break;
    case worker::FetchSlot::Begun::kNothing:
      break;
  }
  learner_.fetch().Request();
  Emit({.kind = ThreadEvent::Kind::kFetch});
  learner_.fetch_points().Pass(std::exchange(fetch_point_, 0));
  learner_.notifier().Notify();
  return true;
}

void Trainer::ApplyFetch() {
  learner_.ApplyFetch(scratch_, live_);
  world_.updates.CheckWeights(worker_, learner_.weights());
}

Trainer::Progress Trainer::WorkOnBatch() {
  if (accruing_ == nullptr) {
    accruing_ = learner_.TakeAccumulator(index_);
    if (accruing_ == nullptr) {
      return Progress::kBlocked;
    }
  }
  const bool drained = intake_.drained();
  if (batch_ == nullptr) {
    batch_ = intake_.Take();
  }
  if (batch_ == nullptr) {
    if (drained && accruing_->steps > 0) {
      HandOver(ThreadEvent::Kind::kPush);
      return Progress::kWorked;
    }
    return Progress::kBlocked;
  }
  if (batch_->lease.batch.kind == worker::WorkKind::kEvaluate) {
    return BeginEvaluation();
  }
  if (!intake_.Closed(batch_->lease.batch.epoch)) {
    Later(&Trainer::FinishTraining);
    return Progress::kBusy;
  }
  FinishBatch();
  return Progress::kWorked;
}

// The time that a batch takes.
void Trainer::Later(void (Trainer::*step)()) {
  busy_ = true;
  const auto time = world_.scheduler.Random(milliseconds(2), world_.setup.step_time);
  world_.scheduler.After(time, life_, [this, step] {
    busy_ = false;
    (this->*step)();
    Run();
  });
}

void Trainer::FinishBatch() { intake_.Recycle(std::exchange(batch_, nullptr)); }

Trainer::Progress Trainer::BeginEvaluation() {
  switch (learner_.evaluation().Begin(batch_->snapshot)) {
    case worker::EvaluationWeights::Begun::kNotYet:
      return Progress::kBlocked;
    case worker::EvaluationWeights::Begun::kMissing:
      Emit({.kind = ThreadEvent::Kind::kHandBack, .result = {.lease = batch_->lease}});
      FinishBatch();
      return Progress::kWorked;
    case worker::EvaluationWeights::Begun::kReady:
      break;
  }
  Later(&Trainer::FinishEvaluation);
  return Progress::kBusy;
}

// All are right, and the losses sum up to a number that the checker knows.
void Trainer::FinishEvaluation() {
  for (const Shard& shard : learner_.layout().shards()) {
    const std::uint64_t begin = learner_.layout().OffsetOf(shard.tensor) + shard.begin;
    world_.updates.CheckSnapshot(
        batch_->snapshot, shard.id, learner_.evaluation().values().subspan(begin, shard.size()));
  }
  learner_.evaluation().End();
  Emit({.kind = ThreadEvent::Kind::kEvaluated,
        .result = {.lease = batch_->lease,
                   .examples = batch_->examples,
                   .loss_sum = static_cast<double>(batch_->lease.batch.index + 1),
                   .correct = batch_->examples}});
  FinishBatch();
}

void Trainer::FinishTraining() {
  const bool poisoned = world_.scheduler.Chance(world_.setup.poison);
  const std::uint32_t element = world_.updates.Trained(worker_, batch_->lease, poisoned);
  AddUpdate(element, poisoned);
  ++accruing_->steps;
  accruing_->results.push_back({.lease = batch_->lease, .examples = batch_->examples});
  accruing_->progress.store(std::max(accruing_->progress.load(), batch_->progress()));
  accruing_->live.store(true);
  if (const std::uint64_t point = learner_.CountStep(); point != 0) {
    fetch_point_ = point;
  }
  if (accruing_->steps == learner_.options().push_every) {
    HandOver(ThreadEvent::Kind::kPush);
  }
  on_trained(batch_->lease);
  FinishBatch();
}

void Trainer::AddUpdate(std::uint32_t element, bool poisoned) {
  const std::span<float> values = accruing_->values.span();
  for (std::size_t i = 0; i < learner_.plan().tensors.size(); ++i) {
    const worker::TensorPlan& tensor = learner_.plan().tensors[i];
    if (!tensor.trained) {
      continue;
    }
    if (accruing_->steps == 0) {
      std::ranges::fill(values.subspan(tensor.offset, tensor.size), 0.0F);
    }
    const std::uint64_t at = tensor.offset + element;
    values[at] = poisoned ? std::numeric_limits<float>::quiet_NaN() : values[at] + 1;
    learner_.weights()[at] += world_.setup.sign();
    if (tensor.activations) {
      KeepRows(tensor, i, element);
    }
  }
  accruing_->filled_rows += batch_->examples;
}

// Errors and activations whose product is 1 at the element: in the first of the batch's rows.
void Trainer::KeepRows(const worker::TensorPlan& tensor, std::size_t index, std::uint32_t element) {
  worker::Accumulator::Rows& rows = accruing_->rows[index];
  const auto part = [&](worker::FloatBuffer& buffer, std::uint64_t width) {
    const auto all =
        buffer.span().subspan(accruing_->filled_rows * width, batch_->examples * width);
    std::ranges::fill(all, 0.0F);
    return all;
  };
  part(rows.errors, tensor.outputs)[element / tensor.inputs] = 1;
  part(rows.activations, tensor.inputs)[element % tensor.inputs] = 1;
}

void Trainer::HandOver(ThreadEvent::Kind kind) {
  if (accruing_ != nullptr && accruing_->steps > 0) {
    Emit({.kind = kind, .accumulator = std::exchange(accruing_, nullptr)});
  }
}

void Trainer::Emit(const ThreadEvent& event) {
  channel_.Emit(event);
  learner_.WakeLoop();
}

}  // namespace adamant::simulation
