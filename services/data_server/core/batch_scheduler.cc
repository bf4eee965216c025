#include "services/data_server/core/batch_scheduler.h"

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::data_server {
namespace {

PartTableOptions TableOptions(const BatchSchedulerOptions& options) {
  return {.slot = options.slot,
          .incarnation = options.incarnation,
          .poll_interval = options.poll_interval,
          .reload_delay = options.reload_delay};
}

BatchDispatcherOptions BatchOptions(const BatchSchedulerOptions& options) {
  return {.lease_time = options.lease_time,
          .first_lease = protocol::FirstLeaseId(options.slot, options.incarnation),
          .warm_start_examples = options.warm_start_examples,
          .validation_examples = options.validation_examples,
          .batch_size = options.batch_size,
          .most_frequent = options.most_frequent};
}

}  // namespace

Clock::Duration ControllerTimeout(Clock::Duration silence_timeout) {
  return std::max(BatchSchedulerOptions{}.controller_timeout, silence_timeout * 3 / 2);
}

BatchScheduler::BatchScheduler(const BatchSchedulerOptions& options)
    : options_(options),
      layout_(options.train_examples, options.parts, options.batch_size),
      parts_(layout_, TableOptions(options), out_),
      batches_(BatchOptions(options), parts_, out_) {}

std::vector<Output> BatchScheduler::Handle(const Input& input, TimePoint now) {
  out_.clear();
  std::visit([&](const auto& message) { On(message, now); }, input);
  parts_.StartWrites();
  parts_.SendAnswers();
  parts_.ReportClosed();
  ReportEnded();
  GoOnAlone(now);
  batches_.DispatchAll(now);
  parts_.StartWrites();  // dispatching a lost batch again changes the ledger
  return std::exchange(out_, {});
}

void BatchScheduler::On(const KeepAlive& message, TimePoint now) {
  if (batches_.Hear(message.worker, now) && message.controller_heard) {
    controller_heard_ = now;
  }
}

void BatchScheduler::On(const ControllerAway&, TimePoint now) {
  if (!std::exchange(away_, true)) {
    controller_heard_ = now;
    parts_.StartPolling(now);
  }
}

void BatchScheduler::On(const ControllerBack&, TimePoint) {
  away_ = false;
  if (!parts_.open()) {
    parts_.StopPolling();
  }
}

void BatchScheduler::On(const WorkView& view, TimePoint) {
  batches_.Retain(view.workers);
  for (const std::uint32_t part : parts_.SetOwners(view.part_owner)) {
    batches_.ForgetPart(part);
  }
}

void BatchScheduler::On(const OpenEpoch& command, TimePoint now) {
  Confirm(command.epoch);
  if (command.epoch == parts_.epoch() && !parts_.open()) {
    out_.emplace_back(EpochEnded{.epoch = command.epoch});  // its controller missed that
  } else if (command.epoch >= parts_.epoch()) {
    StartEpoch(command.epoch, now);
  }
}

void BatchScheduler::On(const CloseEpoch& command, TimePoint) {
  Confirm(command.epoch);
  if (command.epoch >= parts_.epoch()) {
    EndEpoch(command.epoch, true);
  }
}

void BatchScheduler::On(const Evaluate& command, TimePoint) {
  Confirm(command.epoch);
  if (command.epoch < parts_.epoch()) {
    return;  // the values of that epoch's end are no more
  }
  batches_.OnEvaluate(command);
}

void BatchScheduler::On(const RecordRead& answer, TimePoint now) {
  if (const std::optional<std::uint32_t> loaded = parts_.OnRead(answer, now)) {
    batches_.ForgetPart(
        *loaded);  // what they were for is dispatched anew, unless the record counts it
  }
}

void BatchScheduler::On(const Tick&, TimePoint now) {
  batches_.Expire(now);
  parts_.ReadDue(now);
}

void BatchScheduler::StartEpoch(DataEpoch epoch, TimePoint now) {
  if (batches_.ForgetTraining(epoch - 1)) {
    batches_.TellClosed(epoch - 1);
  }
  batches_.ForgetEvaluation();
  if (epoch > parts_.epoch()) {
    batches_.ForgetDrained();
  }
  reported_ended_ = false;
  parts_.Open(epoch, now);
}

void BatchScheduler::EndEpoch(DataEpoch epoch, bool report) {
  parts_.Close(epoch, report);
  if (!away_) {
    parts_.StopPolling();
  }
  batches_.ForgetTraining(epoch);
  batches_.TellClosed(epoch);
}

void BatchScheduler::Confirm(DataEpoch epoch) {
  if (Part* first = parts_.Find(0)) {
    first->Confirm(epoch);
  }
}

// Only what is stored counts: a decision must not be undone by the loss of this process.
bool BatchScheduler::EpochIsComplete() const {
  const Part* first = parts_.Find(0);
  return parts_.open() && first != nullptr && first->ready() &&
         static_cast<double>(parts_.StoredExamples()) >=
             options_.epoch_completion * static_cast<double>(options_.train_examples);
}

void BatchScheduler::ReportEnded() {
  if (!reported_ended_ && EpochIsComplete()) {
    ADAMANT_FAILPOINT("epoch/enough");
    reported_ended_ = true;
    out_.emplace_back(EpochEnded{.epoch = parts_.epoch()});
  }
}

void BatchScheduler::GoOnAlone(TimePoint now) {
  alone_ = away_ && now - controller_heard_ >= options_.controller_timeout;
  if (!alone_) {
    return;
  }
  if (Part* first = parts_.Find(0)) {
    Lead(*first, now);
  } else {
    Follow(parts_.foreign(0), now);
  }
}

void BatchScheduler::Lead(Part& first, TimePoint now) {
  if (!first.stored()) {
    return;
  }
  if (first.stored_epoch() > parts_.epoch()) {
    return StartAlone(first.stored_epoch(), now);
  }
  if (!IsFollowed()) {
    return;
  }
  if (EpochIsComplete()) {
    ADAMANT_FAILPOINT("epoch/end_alone");
    EndEpoch(parts_.epoch(), false);
  } else if (const std::optional<UnattendedEpoch> ended = parts_.ClosedEpoch()) {
    ADAMANT_FAILPOINT("epoch/succeed_alone");
    first.Succeed(*ended);
  }
}

void BatchScheduler::Follow(const Ledger& first, TimePoint now) {
  if (first.epoch > parts_.epoch()) {
    StartAlone(first.epoch, now);
  }
  if (first.epoch == parts_.epoch() && first.closed && parts_.open()) {
    EndEpoch(first.epoch, false);
  }
}

void BatchScheduler::StartAlone(DataEpoch epoch, TimePoint now) {
  ADAMANT_FAILPOINT("epoch/open_alone");
  StartEpoch(epoch, now);
  out_.emplace_back(OpenedAlone{.epoch = epoch});
}

// Whether another epoch may follow this one without the controller's word.
bool BatchScheduler::IsFollowed() const {
  if (parts_.epoch() == 0 || parts_.epoch() >= options_.epochs) {
    return false;
  }
  const std::optional<Evaluation>& evaluation = batches_.evaluation();
  if (!evaluation || evaluation->command().epoch != parts_.epoch()) {
    return true;
  }
  if (!evaluation->done()) {
    return false;
  }
  const Evaluated sum = evaluation->Sum();
  return !options_.target_accuracy || sum.examples == 0 ||
         static_cast<double>(sum.correct) / static_cast<double>(sum.examples) <
             *options_.target_accuracy;
}

std::optional<Clock::TimePoint> BatchScheduler::NextWake() const {
  std::optional<TimePoint> next = batches_.NextExpiry();
  const auto consider = [&next](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (const std::optional<TimePoint> read = parts_.NextWake()) {
    consider(*read);
  }
  if (away_ && !alone_) {
    consider(controller_heard_ + options_.controller_timeout);
  }
  return next;
}

std::vector<BatchId> BatchScheduler::Upcoming(std::size_t count) const {
  return batches_.Upcoming(count);
}

protocol::DataServerProgress BatchScheduler::progress() const {
  const auto& owned = parts_.owned();
  const bool known = !owned.empty() && std::ranges::all_of(owned, [](const auto& each) {
    return each.second.ready();
  });
  protocol::DataServerProgress progress{.epoch = known ? parts_.epoch() : DataEpoch(0),
                                        .job_examples = parts_.JobExamples()};
  if (const Part* first = parts_.Find(0); first != nullptr && first->ready()) {
    progress.decided_epoch = first->stored_epoch();
    progress.unattended = first->ledger().unattended;
  }
  for (const auto& [index, part] : owned) {
    progress.total_examples += layout_.PartExamples(index);
    if (part.ledger().epoch == parts_.epoch()) {
      progress.counted_examples += part.ledger().counted_examples;
      progress.retrained_examples += part.ledger().retrained_examples;
    }
  }
  progress.dispatched_examples = batches_.DispatchedExamples();
  return progress;
}

}  // namespace adamant::data_server
