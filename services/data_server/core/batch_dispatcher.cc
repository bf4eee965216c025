#include "services/data_server/core/batch_dispatcher.h"

#include <string>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::data_server {

BatchDispatcher::BatchDispatcher(const BatchDispatcherOptions& options,
                                 PartTable& parts,
                                 std::vector<Output>& out)
    : options_(options),
      parts_(parts),
      out_(out),
      workers_(options.lease_time, options.first_lease) {}

WorkerTable::Worker* BatchDispatcher::HearWorker(WorkerId id, TimePoint now) {
  WorkerTable::Worker* worker = workers_.Find(id);
  if (worker != nullptr) {
    worker->last_heard = now;
  }
  return worker;
}

bool BatchDispatcher::Hear(WorkerId worker, TimePoint now) {
  return HearWorker(worker, now) != nullptr;
}

void BatchDispatcher::OnHello(const Hello& hello, TimePoint now) {
  std::vector<BatchId> lost;
  const std::string refused = workers_.Admit(hello, now, lost);
  GiveBackAll(lost);
  out_.emplace_back(HelloAnswer{.to = hello.worker, .refused = refused});
}

void BatchDispatcher::OnDisconnected(WorkerId id) {
  if (WorkerTable::Worker* worker = workers_.Find(id)) {
    worker->connected = false;
  }
}

void BatchDispatcher::OnResults(const Acknowledge& message, TimePoint now) {
  WorkerTable::Worker* worker = HearWorker(message.worker, now);
  if (worker == nullptr) {
    return;
  }
  for (const LeaseResult& result : message.results) {
    workers_.Release(*worker, result.lease);
    if (result.lease.batch.kind == WorkKind::kEvaluate) {
      JudgeEvaluation(message.worker, result);
    } else if (Part* part = parts_.Find(result.lease.batch.part)) {
      part->Judge(message.worker, result.lease);
    }
  }
}

void BatchDispatcher::OnHandBack(const HandBack& message, TimePoint now) {
  WorkerTable::Worker* worker = HearWorker(message.worker, now);
  if (worker == nullptr) {
    return;
  }
  for (const Lease& lease : message.leases) {
    const std::optional<WorkerTable::Held> held = workers_.Release(*worker, lease);
    if (held && !held->ended) {
      GiveBack(held->batch, false);
    }
  }
}

void BatchDispatcher::Retain(const std::vector<WorkerId>& members) {
  std::vector<BatchId> lost;
  for (const WorkerId& worker : workers_.Retain(members, lost)) {
    out_.emplace_back(Disconnect{.to = worker});
  }
  GiveBackAll(lost);
}

void BatchDispatcher::Expire(TimePoint now) {
  std::vector<BatchId> lost;
  workers_.Expire(now, lost);
  GiveBackAll(lost);
}

void BatchDispatcher::GiveBack(const BatchId& batch, bool lost) {
  if (batch.kind == WorkKind::kEvaluate) {
    evaluation_->queue().Return({.batch = batch.index, .lost = lost});
  } else if (Part* part = parts_.Find(batch.part)) {
    part->Return(batch, lost);
  }
}

void BatchDispatcher::GiveBackAll(const std::vector<BatchId>& lost) {
  for (const BatchId& batch : lost) {
    ADAMANT_FAILPOINT("work/dispatch_again");
    GiveBack(batch, true);
  }
}

void BatchDispatcher::OnEvaluate(const Evaluate& command) {
  const bool same = evaluation_ && evaluation_->command().epoch == command.epoch &&
                    evaluation_->command().snapshot == command.snapshot;
  if (!same) {
    ForgetEvaluation();
    evaluation_.emplace(
        command, options_.validation_examples, options_.batch_size, options_.most_frequent);
  }
  if (evaluation_->done()) {
    out_.emplace_back(evaluation_->Sum());
  }
}

void BatchDispatcher::ForgetEvaluation() {
  workers_.Forget([](const BatchId& batch) { return batch.kind == WorkKind::kEvaluate; });
  evaluation_.reset();
}

void BatchDispatcher::JudgeEvaluation(WorkerId worker, const LeaseResult& result) {
  Acknowledged answer{.to = worker, .leases = {result.lease}, .duplicates = {}};
  const bool counted = evaluation_ && evaluation_->Count(result);
  if (!counted) {
    answer.duplicates = {0};
  }
  out_.emplace_back(std::move(answer));
  if (counted && evaluation_->done()) {
    ADAMANT_FAILPOINT("epoch/evaluated");
    out_.emplace_back(evaluation_->Sum());
  }
}

void BatchDispatcher::ForgetPart(std::uint32_t part) {
  workers_.Forget([part](const BatchId& batch) {
    return batch.kind == WorkKind::kTrain && batch.part == part;
  });
}

bool BatchDispatcher::ForgetTraining(DataEpoch up_to_epoch) {
  bool any = false;
  workers_.Forget([&](const BatchId& batch) {
    const bool matches = batch.kind == WorkKind::kTrain && batch.epoch <= up_to_epoch;
    any = any || matches;
    return matches;
  });
  return any;
}

void BatchDispatcher::TellClosed(DataEpoch epoch) {
  for (auto& [slot, worker] : workers_.workers()) {
    worker.told_drained = false;
    if (worker.connected) {
      out_.emplace_back(EpochClosed{.to = worker.id, .epoch = epoch});
    }
  }
}

void BatchDispatcher::ForgetDrained() {
  for (auto& [slot, worker] : workers_.workers()) {
    worker.told_drained = false;
  }
}

bool BatchDispatcher::OnlyWorkerZero() const {
  return parts_.JobExamples() < options_.warm_start_examples;
}

std::optional<PartTable::Choice> BatchDispatcher::NextFor(const WorkerTable::Worker& worker) {
  if (evaluation_ && !evaluation_->done()) {
    const std::optional<BatchQueue::Entry> entry = evaluation_->queue().Next();
    return entry ? std::optional(PartTable::Choice{evaluation_->Batch(entry->batch), entry->lost})
                 : std::nullopt;
  }
  if (!parts_.open() || (worker.id.slot != 0 && OnlyWorkerZero())) {
    return std::nullopt;
  }
  return parts_.Next();
}

void BatchDispatcher::DispatchAll(TimePoint now) {
  bool dispatched = true;
  while (dispatched) {
    dispatched = false;
    for (auto& [slot, worker] : workers_.workers()) {
      if (!workers_.CanTake(worker, now)) {
        continue;
      }
      if (const std::optional<PartTable::Choice> choice = NextFor(worker)) {
        DispatchTo(worker, *choice);
        dispatched = true;
      }
    }
  }
  TellDrained();
}

void BatchDispatcher::DispatchTo(WorkerTable::Worker& worker, const PartTable::Choice& choice) {
  ADAMANT_FAILPOINT("work/dispatch");
  const std::uint64_t lease = workers_.Grant(worker, choice.batch);
  worker.told_drained = false;
  const bool evaluate = choice.batch.kind == WorkKind::kEvaluate;
  if (evaluate) {
    evaluation_->Dispatched(lease, choice.batch.index);
  }
  out_.emplace_back(Dispatch{.to = worker.id,
                             .lease = {.batch = choice.batch, .id = lease},
                             .job_examples = parts_.JobExamples(),
                             .ahead_examples = evaluate ? 0 : parts_.AheadExamples(choice.batch),
                             .snapshot = evaluate ? evaluation_->command().snapshot : 0,
                             .again = choice.again});
}

void BatchDispatcher::TellDrained() {
  if (!parts_.open() || parts_.MayHaveNext()) {
    return;
  }
  // Also those without leases: a worker pushes early only when all its data servers have told it.
  for (auto& [slot, worker] : workers_.workers()) {
    if (worker.connected && !worker.told_drained) {
      worker.told_drained = true;
      out_.emplace_back(Drained{.to = worker.id, .epoch = parts_.epoch()});
    }
  }
}

std::vector<BatchId> BatchDispatcher::Upcoming(std::size_t count) const {
  std::vector<BatchId> batches;
  std::vector<std::uint32_t> indices;
  if (evaluation_ && !evaluation_->done()) {
    evaluation_->queue().Peek(count, indices);
    for (const std::uint32_t index : indices) {
      batches.push_back(evaluation_->Batch(index));
    }
    return batches;
  }
  for (const auto& [index, part] : parts_.owned()) {
    indices.clear();
    if (const BatchQueue* queue = part.queue(); queue != nullptr && parts_.open()) {
      queue->Peek(count - batches.size(), indices);
    }
    for (const std::uint32_t batch : indices) {
      batches.push_back(
          {.kind = WorkKind::kTrain, .epoch = part.ledger().epoch, .part = index, .index = batch});
    }
  }
  return batches;
}

std::uint64_t BatchDispatcher::DispatchedExamples() const {
  std::uint64_t sum = 0;
  for (const auto& [slot, worker] : workers_.workers()) {
    for (const auto& [id, lease] : worker.leases) {
      if (lease.batch.kind == WorkKind::kTrain && !lease.ended) {
        sum += parts_.layout().BatchExamples(lease.batch.part, lease.batch.index);
      }
    }
  }
  return sum;
}

}  // namespace adamant::data_server
