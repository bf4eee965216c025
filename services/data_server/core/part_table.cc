#include "services/data_server/core/part_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::data_server {

PartTable::PartTable(const PartLayout& layout,
                     const PartTableOptions& options,
                     std::vector<Output>& out)
    : layout_(layout),
      options_(options),
      out_(out),
      requests_(options.poll_interval, out),
      foreign_(layout.parts()) {}

void PartTable::Open(DataEpoch epoch, TimePoint now) {
  epoch_ = epoch;
  open_ = true;
  StartPolling(now);
  for (auto& [index, part] : owned_) {
    part.Open(epoch);
  }
  Poll(now);
}

void PartTable::Close(DataEpoch epoch, bool report) {
  epoch_ = epoch;
  open_ = false;
  for (auto& [index, part] : owned_) {
    part.Close(epoch, report);
  }
}

std::vector<std::uint32_t> PartTable::SetOwners(const std::vector<std::uint32_t>& owners) {
  std::vector<std::uint32_t> taken;
  for (std::uint32_t part = 0; part < layout_.parts(); ++part) {
    const bool ours = part < owners.size() && owners[part] == options_.slot;
    if (ours && !owned_.contains(part)) {
      Own(part);
    } else if (!ours && owned_.erase(part) > 0) {
      requests_.Drop(part);
      taken.push_back(part);
    }
  }
  return taken;
}

void PartTable::Own(std::uint32_t part) {
  requests_.Drop(part);  // an answer to a poll is not what the part waits for
  const auto [it, added] =
      owned_.try_emplace(part, layout_, part, options_.slot, options_.incarnation);
  if (epoch_ > 0 && open_) {
    it->second.Open(epoch_);
  } else if (epoch_ > 0) {
    it->second.Close(epoch_, true);
  }
  requests_.Read(part);
}

Part* PartTable::Find(std::uint32_t part) {
  const auto it = owned_.find(part);
  return it != owned_.end() ? &it->second : nullptr;
}

const Part* PartTable::Find(std::uint32_t part) const {
  const auto it = owned_.find(part);
  return it != owned_.end() ? &it->second : nullptr;
}

std::optional<std::uint32_t> PartTable::OnRead(const RecordRead& answer, TimePoint now) {
  const std::optional<std::uint32_t> part = requests_.Take(answer.request);
  if (!part) {
    return std::nullopt;  // of a part that was taken from us meanwhile
  }
  Part* const owned = Find(*part);
  if (owned == nullptr) {
    ReadForeign(*part, answer);
    return std::nullopt;
  }
  if (owned->in_conflict()) {
    if (!owned->ResolveConflict(answer.record)) {
      // Another server dispatches this part: perhaps it is ours no more. If the memberships to come
      // do not take it from us, the other one was late, and its record is where we go on.
      requests_.ReadAt(*part, now + options_.reload_delay);
    }
    return std::nullopt;
  }
  if (const absl::Status status = owned->Load(answer.record); !status.ok()) {
    out_.emplace_back(Failed{.reason = std::string(status.message())});
  }
  return part;
}

void PartTable::ReadForeign(std::uint32_t part, const RecordRead& answer) {
  if (!answer.record) {
    return;
  }
  absl::StatusOr<Ledger> ledger = ParseLedger(answer.record->value);
  if (!ledger.ok()) {
    out_.emplace_back(Failed{.reason = std::string(ledger.status().message())});
    return;
  }
  ledger->counted.clear();
  foreign_[part] = *std::move(ledger);
}

void PartTable::OnWritten(const RecordWritten& answer) {
  const std::optional<std::uint32_t> part = requests_.Take(answer.request);
  if (!part) {
    return;  // of a part that was taken from us meanwhile
  }
  if (!answer.conflict) {
    owned_.at(*part).Stored(answer.version);
    return;
  }
  // Another server wrote, or the answer to an earlier try of ours was missed: the record will tell.
  ADAMANT_FAILPOINT("ledger/conflict");
  owned_.at(*part).Conflict();
  requests_.Read(*part);
}

void PartTable::StartWrites() {
  for (auto& [index, part] : owned_) {
    if (std::optional<WriteRecord> write = part.StartWrite()) {
      requests_.Write(*std::move(write));
    }
  }
}

void PartTable::SendAnswers() {
  std::map<WorkerId, Acknowledged> answers;
  for (auto& [index, part] : owned_) {
    for (const Part::Answer& answer : part.TakeAnswers()) {
      Acknowledged& message = answers[answer.worker];
      message.to = answer.worker;
      if (answer.duplicate) {
        message.duplicates.push_back(static_cast<std::uint32_t>(message.leases.size()));
      }
      message.leases.push_back(answer.lease);
    }
  }
  for (auto& [worker, message] : answers) {
    ADAMANT_FAILPOINT("ledger/answer");
    out_.emplace_back(std::move(message));
  }
}

void PartTable::ReportClosed() {
  for (auto& [index, part] : owned_) {
    if (const std::optional<PartClosed> closed = part.TakeClosed()) {
      out_.emplace_back(*closed);
    }
  }
}

void PartTable::StartPolling(TimePoint now) {
  if (layout_.parts() > 1) {
    requests_.StartPolling(now);
  }
}

void PartTable::ReadDue(TimePoint now) {
  Poll(now);
  requests_.ReadDue(now);
}

void PartTable::Poll(TimePoint now) {
  if (!requests_.TakePoll(now)) {
    return;
  }
  for (std::uint32_t part = 0; part < layout_.parts(); ++part) {
    if (!owned_.contains(part) && !requests_.IsUnderWay(part)) {
      requests_.Read(part);
    }
  }
}

std::optional<PartTable::Choice> PartTable::Next() {
  for (const bool returned : {true, false}) {
    for (auto& [index, part] : owned_) {
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

bool PartTable::MayHaveNext() {
  return std::any_of(owned_.begin(), owned_.end(), [](auto& entry) {
    BatchQueue* queue = entry.second.queue();
    return queue != nullptr ? queue->HasNext() : !entry.second.ready();
  });
}

std::uint64_t PartTable::JobExamples() const {
  std::uint64_t sum = 0;
  for (std::uint32_t index = 0; index < layout_.parts(); ++index) {
    const Part* part = Find(index);
    sum += part != nullptr && part->ready() ? part->ledger().job_examples()
                                            : foreign_[index].job_examples();
  }
  return sum;
}

std::uint64_t PartTable::AheadExamples(const BatchId& dispatched) const {
  std::size_t out = 0;
  for (const auto& [index, part] : owned_) {
    const BatchQueue* queue = part.queue();
    out += queue != nullptr ? queue->out() : 0;
  }
  const std::uint64_t own = layout_.BatchExamples(dispatched.part, dispatched.index);
  return (std::max<std::size_t>(out, 1) - 1) * layout_.batch_size() + (own + 1) / 2;
}

std::uint64_t PartTable::StoredExamples() const {
  std::uint64_t sum = 0;
  for (std::uint32_t index = 0; index < layout_.parts(); ++index) {
    if (const Part* part = Find(index)) {
      sum += part->ledger().epoch == epoch_ ? part->stored_examples() : 0;
    } else if (foreign_[index].epoch == epoch_) {
      sum += foreign_[index].counted_examples;
    }
  }
  return sum;
}

std::optional<UnattendedEpoch> PartTable::ClosedEpoch() const {
  UnattendedEpoch sums{.epoch = epoch_};
  for (std::uint32_t index = 0; index < layout_.parts(); ++index) {
    const Part* part = Find(index);
    const Ledger& ledger = part != nullptr ? part->ledger() : foreign_[index];
    if ((part != nullptr && !part->stored()) || ledger.epoch != epoch_ || !ledger.closed) {
      return std::nullopt;
    }
    sums.counted += ledger.counted_examples;
    sums.retrained += ledger.retrained_examples;
  }
  sums.left = layout_.examples() - std::min<std::uint64_t>(layout_.examples(), sums.counted);
  return sums;
}

}  // namespace adamant::data_server
