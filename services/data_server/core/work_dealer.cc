#include "services/data_server/core/work_dealer.h"

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::data_server {
namespace {

// Lease ids of different processes differ, so that a late result is never taken for another's: 24
// bits of incarnation, 12 of slot, 28 that count.
constexpr int kIncarnationShift = 40;
constexpr int kSlotShift = 28;

std::uint64_t FirstLease(const WorkDealerOptions& options) {
  return (options.incarnation << kIncarnationShift) + (std::uint64_t{options.slot} << kSlotShift) +
         1;
}

}  // namespace

WorkDealer::WorkDealer(const WorkDealerOptions& options)
    : options_(options),
      layout_(options.train_examples, options.parts, options.batch_size),
      workers_(options.lease_time, FirstLease(options)),
      foreign_(options.parts) {}

std::vector<Output> WorkDealer::Handle(const Input& input, TimePoint now) {
  out_.clear();
  std::visit([&](const auto& message) { On(message, now); }, input);
  StartWrites();
  SendAnswers();
  ReportClosed();
  ReportEnded();
  GoOnAlone(now);
  DealAll(now);
  StartWrites();  // dealing a lost batch again changes the ledger
  return std::exchange(out_, {});
}

WorkerTable::Worker* WorkDealer::Hear(WorkerId id, TimePoint now) {
  WorkerTable::Worker* worker = workers_.Find(id);
  if (worker != nullptr) {
    worker->last_heard = now;
  }
  return worker;
}

void WorkDealer::On(const Hello& hello, TimePoint now) {
  std::vector<BatchId> lost;
  const std::string refused = workers_.Admit(hello, now, lost);
  GiveBackAll(lost);
  out_.emplace_back(HelloAnswer{.to = hello.worker, .refused = refused});
}

void WorkDealer::On(const Disconnected& gone, TimePoint) {
  if (WorkerTable::Worker* worker = workers_.Find(gone.worker)) {
    worker->connected = false;
  }
}

void WorkDealer::On(const Acknowledge& message, TimePoint now) {
  WorkerTable::Worker* worker = Hear(message.worker, now);
  if (worker == nullptr) {
    return;
  }
  for (const LeaseResult& result : message.results) {
    workers_.Release(*worker, result.lease);
    if (result.lease.batch.kind == WorkKind::kEvaluate) {
      JudgeEvaluation(message.worker, result);
    } else if (const auto part = parts_.find(result.lease.batch.part); part != parts_.end()) {
      part->second.Judge(message.worker, result.lease);
    }
  }
}

void WorkDealer::On(const HandBack& message, TimePoint now) {
  WorkerTable::Worker* worker = Hear(message.worker, now);
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

void WorkDealer::On(const KeepAlive& message, TimePoint now) {
  if (Hear(message.worker, now) != nullptr && message.controller_heard) {
    controller_heard_ = now;
  }
}

void WorkDealer::On(const Membership& view, TimePoint) {
  std::vector<BatchId> lost;
  for (const WorkerId& worker : workers_.Retain(view.workers, lost)) {
    out_.emplace_back(Disconnect{.to = worker});
  }
  part_owner_ = view.part_owner;
  part_owner_.resize(options_.parts, options_.slot + 1);
  for (std::uint32_t part = 0; part < options_.parts; ++part) {
    const bool ours = part_owner_[part] == options_.slot;
    if (ours && !parts_.contains(part)) {
      DropRequests(part);  // an answer to a poll is not what the part waits for
      const auto [it, added] =
          parts_.try_emplace(part, layout_, part, options_.slot, options_.incarnation);
      if (epoch_ > 0 && open_) {
        it->second.Open(epoch_);
      } else if (epoch_ > 0) {
        it->second.Close(epoch_, true);
      }
      RequestRead(part);
    } else if (!ours && parts_.erase(part) > 0) {
      reload_at_.erase(part);
      DropRequests(part);
      ForgetLeases(part);
    }
  }
  GiveBackAll(lost);
}

void WorkDealer::On(const Evaluate& command, TimePoint) {
  Confirm(command.epoch);
  if (command.epoch < epoch_) {
    return;  // the values of that epoch's end are no more
  }
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

void WorkDealer::On(const Tick&, TimePoint now) {
  std::vector<BatchId> lost;
  workers_.Expire(now, lost);
  GiveBackAll(lost);
  PollForeign(now);
  ReloadFenced(now);
}

void WorkDealer::JudgeEvaluation(WorkerId worker, const LeaseResult& result) {
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

void WorkDealer::GiveBack(const BatchId& batch, bool lost) {
  const BatchQueue::Entry entry{.batch = batch.index, .lost = lost};
  if (batch.kind == WorkKind::kEvaluate) {
    evaluation_->queue().Return(entry);
  } else if (const auto part = parts_.find(batch.part); part != parts_.end()) {
    part->second.Return(batch, lost);
  }
}

void WorkDealer::GiveBackAll(const std::vector<BatchId>& lost) {
  for (const BatchId& batch : lost) {
    ADAMANT_FAILPOINT("work/deal_again");
    GiveBack(batch, true);
  }
}

void WorkDealer::ForgetLeases(std::uint32_t part) {
  workers_.Forget([part](const BatchId& batch) {
    return batch.kind == WorkKind::kTrain && batch.part == part;
  });
}

bool WorkDealer::ForgetTraining(std::uint64_t up_to_epoch) {
  bool any = false;
  workers_.Forget([&](const BatchId& batch) {
    const bool matches = batch.kind == WorkKind::kTrain && batch.epoch <= up_to_epoch;
    any = any || matches;
    return matches;
  });
  return any;
}

void WorkDealer::ForgetEvaluation() {
  workers_.Forget([](const BatchId& batch) { return batch.kind == WorkKind::kEvaluate; });
  evaluation_.reset();
}

void WorkDealer::TellClosed(std::uint64_t epoch) {
  for (auto& [slot, worker] : workers_.workers()) {
    worker.told_drained = false;
    if (worker.connected) {
      out_.emplace_back(EpochClosed{.to = worker.id, .epoch = epoch});
    }
  }
}

std::uint64_t WorkDealer::JobExamples() const {
  std::uint64_t sum = 0;
  for (std::uint32_t index = 0; index < options_.parts; ++index) {
    const auto part = parts_.find(index);
    sum += part != parts_.end() && part->second.ready() ? part->second.ledger().job_examples()
                                                        : foreign_[index].job_examples();
  }
  return sum;
}

// Where the middle of a batch that was just taken will be, if all that are out before it arrive:
// schedules then do not lag behind by what is under way, and the first batch is not at 0.
std::uint64_t WorkDealer::AheadExamples(const BatchId& dealt) const {
  std::size_t out = 0;
  for (const auto& [index, part] : parts_) {
    const BatchQueue* queue = part.queue();
    out += queue != nullptr ? queue->out() : 0;
  }
  const std::uint64_t own = layout_.BatchExamples(dealt.part, dealt.index);
  return (std::max<std::size_t>(out, 1) - 1) * layout_.batch_size() + (own + 1) / 2;
}

bool WorkDealer::OnlyWorkerZero() const { return JobExamples() < options_.warm_start_examples; }

std::optional<WorkDealer::Choice> WorkDealer::NextFor(const WorkerTable::Worker& worker) {
  if (evaluation_ && !evaluation_->done()) {
    const std::optional<BatchQueue::Entry> entry = evaluation_->queue().Next();
    return entry ? std::optional(Choice{evaluation_->Batch(entry->batch), entry->lost})
                 : std::nullopt;
  }
  if (!open_ || (worker.id.slot != 0 && OnlyWorkerZero())) {
    return std::nullopt;
  }
  return NextFromParts();
}

std::optional<WorkDealer::Choice> WorkDealer::NextFromParts() {
  // Batches that came back go first, whatever part they are of.
  for (const bool returned : {true, false}) {
    for (auto& [index, part] : parts_) {
      BatchQueue* queue = part.queue();
      if (queue == nullptr || !(returned ? queue->HasReturned() : queue->HasNext())) {
        continue;
      }
      const BatchQueue::Entry entry = *queue->Next();
      if (entry.lost) {
        part.CountRetrained(entry.batch);
      }
      return Choice{{.kind = WorkKind::kTrain,
                     .epoch = part.ledger().epoch,
                     .part = index,
                     .index = entry.batch},
                    entry.lost};
    }
  }
  return std::nullopt;
}

void WorkDealer::DealAll(TimePoint now) {
  bool dealt = true;
  while (dealt) {
    dealt = false;
    for (auto& [slot, worker] : workers_.workers()) {
      if (!workers_.CanTake(worker, now)) {
        continue;
      }
      if (const std::optional<Choice> choice = NextFor(worker)) {
        DealTo(worker, *choice);
        dealt = true;
      }
    }
  }
  TellDrained();
}

void WorkDealer::DealTo(WorkerTable::Worker& worker, const Choice& choice) {
  ADAMANT_FAILPOINT("work/deal");
  const std::uint64_t lease = workers_.Grant(worker, choice.batch);
  worker.told_drained = false;
  const bool evaluate = choice.batch.kind == WorkKind::kEvaluate;
  if (evaluate) {
    evaluation_->Dealt(lease, choice.batch.index);
  }
  out_.emplace_back(Deal{.to = worker.id,
                         .lease = {.batch = choice.batch, .id = lease},
                         .job_examples = JobExamples(),
                         .ahead_examples = evaluate ? 0 : AheadExamples(choice.batch),
                         .snapshot = evaluate ? evaluation_->command().snapshot : 0,
                         .again = choice.again});
}

void WorkDealer::TellDrained() {
  const auto has_work = [](auto& entry) {
    BatchQueue* queue = entry.second.queue();
    return queue != nullptr ? queue->HasNext() : !entry.second.ready();
  };
  if (!open_ || std::any_of(parts_.begin(), parts_.end(), has_work)) {
    return;
  }
  // Also those without leases: a worker pushes early only when all its data servers have told it.
  for (auto& [slot, worker] : workers_.workers()) {
    if (worker.connected && !worker.told_drained) {
      worker.told_drained = true;
      out_.emplace_back(Drained{.to = worker.id, .epoch = epoch_});
    }
  }
}

std::optional<Clock::TimePoint> WorkDealer::NextWake() const {
  std::optional<TimePoint> next = workers_.NextExpiry();
  const auto consider = [&next](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (poll_at_) {
    consider(*poll_at_);
  }
  for (const auto& [part, time] : reload_at_) {
    consider(time);
  }
  if (away_ && !alone_) {
    consider(controller_heard_ + options_.controller_patience);
  }
  return next;
}

std::vector<BatchId> WorkDealer::Upcoming(std::size_t count) const {
  std::vector<BatchId> batches;
  std::vector<std::uint32_t> indices;
  if (evaluation_ && !evaluation_->done()) {
    evaluation_->queue().Peek(count, indices);
    for (const std::uint32_t index : indices) {
      batches.push_back(evaluation_->Batch(index));
    }
    return batches;
  }
  for (const auto& [index, part] : parts_) {
    indices.clear();
    if (const BatchQueue* queue = part.queue(); queue != nullptr && open_) {
      queue->Peek(count - batches.size(), indices);
    }
    for (const std::uint32_t batch : indices) {
      batches.push_back(
          {.kind = WorkKind::kTrain, .epoch = part.ledger().epoch, .part = index, .index = batch});
    }
  }
  return batches;
}

DealerProgress WorkDealer::progress() const {
  DealerProgress progress{.epoch = epoch_, .job_examples = JobExamples()};
  if (const auto first = parts_.find(0); first != parts_.end() && first->second.ready()) {
    progress.decided_epoch = first->second.stored_epoch();
    progress.unattended = first->second.ledger().unattended;
  }
  for (const auto& [index, part] : parts_) {
    progress.total_examples += layout_.PartExamples(index);
    if (part.ledger().epoch == epoch_) {
      progress.counted_examples += part.ledger().counted_examples;
      progress.retrained_examples += part.ledger().retrained_examples;
    }
  }
  for (const auto& [slot, worker] : workers_.workers()) {
    for (const auto& [id, lease] : worker.leases) {
      if (lease.batch.kind == WorkKind::kTrain && !lease.ended) {
        progress.dealt_examples += layout_.BatchExamples(lease.batch.part, lease.batch.index);
      }
    }
  }
  return progress;
}

}  // namespace adamant::data_server
