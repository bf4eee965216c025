#include "services/data_server/core/part.h"

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::data_server {

Part::Part(const PartLayout& layout,
           std::uint32_t part,
           std::uint32_t writer_slot,
           Incarnation writer_incarnation)
    : layout_(layout),
      part_(part),
      writer_slot_(writer_slot),
      writer_incarnation_(writer_incarnation) {}

absl::Status Part::CheckLayout(const Ledger& ledger) const {
  const std::uint32_t batches = layout_.Batches(part_);
  if (ledger.counted.size() != batches) {
    return absl::FailedPreconditionError(
        "the stored ledger of part " + std::to_string(part_) + " has " +
        std::to_string(ledger.counted.size()) + " batches, this job's data gives " +
        std::to_string(batches) +
        ": the data, its batch size or the number of data servers has changed since the run began");
  }
  std::uint64_t examples = 0;
  for (std::uint32_t batch = 0; batch < batches; ++batch) {
    examples += ledger.counted[batch] ? layout_.BatchExamples(part_, batch) : 0;
  }
  if (examples != ledger.counted_examples) {
    return absl::DataLossError("the stored ledger of part " + std::to_string(part_) + " counts " +
                               std::to_string(ledger.counted_examples) +
                               " examples, its batches hold " + std::to_string(examples));
  }
  return absl::OkStatus();
}

bool Part::ResolveConflict(const std::optional<VersionedRecord>& record) {
  if (!record || record->value != under_way_->value) {
    under_way_.reset();
    return false;
  }
  ready_ = true;
  Stored(record->version);
  ApplyCommands();
  return true;
}

absl::Status Part::Load(const std::optional<VersionedRecord>& record) {
  Ledger ledger;
  ledger.counted.resize(layout_.Batches(part_));
  if (record) {
    ADAMANT_ASSIGN_OR_RETURN(ledger, ParseLedger(record->value));
    ADAMANT_RETURN_IF_ERROR(CheckLayout(ledger));
  }
  Adopt(std::move(ledger), record ? record->version : 0);
  return absl::OkStatus();
}

void Part::Adopt(Ledger ledger, std::uint64_t version) {
  ADAMANT_FAILPOINT("ledger/adopt");
  ready_ = true;
  version_ = version;
  queue_ = BatchQueue(ledger.counted);
  ledger_ = std::move(ledger);
  stored_epoch_ = ledger_.epoch;
  stored_examples_ = ledger_.counted_examples;
  dirty_ = false;
  under_way_.reset();
  // What was judged for a value that was never stored is judged again, before what came later.
  judged_.insert(judged_.begin(), writing_.begin(), writing_.end());
  waiting_.insert(waiting_.begin(), judged_.begin(), judged_.end());
  writing_.clear();
  judged_.clear();
  ApplyCommands();
}

void Part::ApplyCommands() {
  if (std::erase_if(ledger_.unattended,
                    [&](const UnattendedEpoch& old) { return old.epoch < confirmed_; }) > 0) {
    dirty_ = true;
  }
  if (open_demanded_ > ledger_.epoch) {
    Begin(open_demanded_);
  }
  if (close_demanded_ == ledger_.epoch && !ledger_.closed) {
    ADAMANT_FAILPOINT("part/close");
    ledger_.closed = true;
    dirty_ = true;
  }
  for (const Answer& answer : std::exchange(waiting_, {})) {
    JudgeNow(answer.worker, answer.lease);
  }
}

void Part::Begin(DataEpoch epoch) {
  ADAMANT_FAILPOINT("part/open");
  ledger_.earlier_examples += ledger_.counted_examples;
  ledger_.counted_examples = 0;
  ledger_.retrained_examples = 0;
  ledger_.epoch = epoch;
  ledger_.closed = false;
  queue_ = BatchQueue(std::vector<bool>(layout_.Batches(part_)));
  stored_examples_ = 0;
  dirty_ = true;
}

void Part::Succeed(const UnattendedEpoch& ended) {
  std::vector<UnattendedEpoch>& unattended = ledger_.unattended;
  if (unattended.size() == Ledger::kMostUnattended) {
    unattended.erase(unattended.begin());
  }
  unattended.push_back(ended);
  Begin(ended.epoch + 1);
}

void Part::Confirm(DataEpoch epoch) {
  confirmed_ = std::max(confirmed_, epoch);
  if (ready_) {
    ApplyCommands();
  }
}

void Part::Open(DataEpoch epoch) {
  open_demanded_ = std::max(open_demanded_, epoch);
  if (ready_) {
    ApplyCommands();
  }
}

void Part::Close(DataEpoch epoch, bool report) {
  open_demanded_ = std::max(open_demanded_, epoch);
  close_demanded_ = std::max(close_demanded_, epoch);
  report_closed_ = report_closed_ || report;
  if (ready_) {
    ApplyCommands();
  }
}

std::optional<PartClosed> Part::TakeClosed() {
  if (!report_closed_ || !stored() || !ledger_.closed || ledger_.epoch != close_demanded_) {
    return std::nullopt;
  }
  ADAMANT_FAILPOINT("part/closed");
  report_closed_ = false;
  return PartClosed{.epoch = ledger_.epoch,
                    .part = part_,
                    .counted_examples = ledger_.counted_examples,
                    .left_examples = layout_.PartExamples(part_) - ledger_.counted_examples,
                    .retrained_examples = ledger_.retrained_examples};
}

std::optional<WriteRecord> Part::StartWrite() {
  if (!ready_ || !dirty_ || under_way_) {
    return std::nullopt;
  }
  ADAMANT_FAILPOINT("ledger/write");
  ledger_.counted = queue_.done();
  ledger_.writer_slot = writer_slot_;
  ledger_.writer_incarnation = writer_incarnation_;
  under_way_ = Write{.value = SerializeLedger(ledger_),
                     .epoch = ledger_.epoch,
                     .counted_examples = ledger_.counted_examples};
  dirty_ = false;
  writing_ = std::exchange(judged_, {});
  return WriteRecord{
      .request = 0, .part = part_, .expected_version = version_, .value = under_way_->value};
}

void Part::Stored(std::uint64_t version) {
  ADAMANT_FAILPOINT("ledger/written");
  version_ = version;
  stored_epoch_ = under_way_->epoch;
  stored_examples_ = under_way_->epoch == ledger_.epoch ? under_way_->counted_examples : 0;
  under_way_.reset();
  answers_.insert(answers_.end(), writing_.begin(), writing_.end());
  writing_.clear();
}

void Part::Return(const BatchId& batch, bool lost) {
  if (batch.epoch == ledger_.epoch) {
    queue_.Return({.batch = batch.index, .lost = lost});
  }
}

void Part::CountRetrained(std::uint32_t batch) {
  ledger_.retrained_examples += layout_.BatchExamples(part_, batch);
  dirty_ = true;
}

bool Part::IsPending(WorkerId worker, const Lease& lease) const {
  const auto same = [&](const Answer& answer) {
    return answer.worker == worker && answer.lease == lease;
  };
  return std::any_of(waiting_.begin(), waiting_.end(), same) ||
         std::any_of(judged_.begin(), judged_.end(), same) ||
         std::any_of(writing_.begin(), writing_.end(), same);
}

void Part::Judge(WorkerId worker, const Lease& lease) {
  if (lease.batch.index >= layout_.Batches(part_) || IsPending(worker, lease)) {
    return;
  }
  JudgeNow(worker, lease);
}

void Part::JudgeNow(WorkerId worker, const Lease& lease) {
  Answer answer{.worker = worker, .lease = lease, .duplicate = true};
  if (!ready_ || lease.batch.epoch > ledger_.epoch) {
    waiting_.push_back(answer);
    return;
  }
  const bool open = lease.batch.epoch == ledger_.epoch && !ledger_.closed;
  if (open && queue_.MarkDone(lease.batch.index)) {
    answer.duplicate = false;
    ledger_.counted_examples += layout_.BatchExamples(part_, lease.batch.index);
    dirty_ = true;
  }
  // A duplicate too waits for the value that holds what it duplicates.
  judged_.push_back(answer);
}

std::vector<Part::Answer> Part::TakeAnswers() {
  if (stored()) {
    answers_.insert(answers_.end(), judged_.begin(), judged_.end());
    judged_.clear();
  }
  return std::exchange(answers_, {});
}

}  // namespace adamant::data_server
