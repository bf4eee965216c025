// WorkDealer: the parts' records, and the end of the epoch that they decide.

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/data_server/core/work_dealer.h"

namespace adamant::data_server {

void WorkDealer::RequestRead(std::uint32_t part) {
  requests_.emplace(next_request_, part);
  out_.emplace_back(ReadRecord{.request = next_request_++, .part = part});
}

void WorkDealer::DropRequests(std::uint32_t part) {
  std::erase_if(requests_, [part](const auto& request) { return request.second == part; });
}

void WorkDealer::On(const RecordRead& answer, TimePoint now) {
  const auto request = requests_.find(answer.request);
  if (request == requests_.end()) {
    return;  // of a part that was taken from us meanwhile
  }
  const std::uint32_t part = request->second;
  requests_.erase(request);
  if (parts_.contains(part)) {
    ReadOwned(part, answer, now);
  } else {
    ReadForeign(part, answer);
  }
}

void WorkDealer::ReadOwned(std::uint32_t part, const RecordRead& answer, TimePoint now) {
  Part& owned = parts_.at(part);
  if (owned.in_conflict()) {
    if (!owned.ResolveConflict(answer.record)) {
      // Another server deals this part: perhaps it is ours no more. If the memberships to come do
      // not take it from us, the other one was late, and its record is where we go on.
      reload_at_[part] = now + options_.reload_delay;
    }
    return;
  }
  ForgetLeases(part);  // what they were for is dealt anew, unless the record counts it
  if (const absl::Status status = owned.Load(answer.record); !status.ok()) {
    out_.emplace_back(Failed{.reason = std::string(status.message())});
  }
}

void WorkDealer::ReadForeign(std::uint32_t part, const RecordRead& answer) {
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

void WorkDealer::On(const RecordWritten& answer, TimePoint) {
  const auto request = requests_.find(answer.request);
  if (request == requests_.end()) {
    return;  // of a part that was taken from us meanwhile
  }
  const std::uint32_t part = request->second;
  requests_.erase(request);
  if (!answer.conflict) {
    parts_.at(part).Stored(answer.version);
    return;
  }
  // Another server wrote, or the answer to an earlier try of ours was missed: the record will tell.
  ADAMANT_FAILPOINT("ledger/conflict");
  parts_.at(part).Conflict();
  RequestRead(part);
}

void WorkDealer::ReloadFenced(TimePoint now) {
  for (auto it = reload_at_.begin(); it != reload_at_.end();) {
    if (it->second <= now) {
      RequestRead(it->first);
      it = reload_at_.erase(it);
    } else {
      ++it;
    }
  }
}

void WorkDealer::PollForeign(TimePoint now) {
  if (!poll_at_ || now < *poll_at_) {
    return;
  }
  poll_at_ = now + options_.poll_interval;
  for (std::uint32_t part = 0; part < options_.parts; ++part) {
    const bool under_way = std::any_of(
        requests_.begin(), requests_.end(), [part](const auto& r) { return r.second == part; });
    if (!parts_.contains(part) && !under_way) {
      RequestRead(part);
    }
  }
}

void WorkDealer::StartWrites() {
  for (auto& [index, part] : parts_) {
    if (std::optional<WriteRecord> write = part.StartWrite()) {
      write->request = next_request_++;
      requests_.emplace(write->request, index);
      out_.emplace_back(*std::move(write));
    }
  }
}

void WorkDealer::SendAnswers() {
  std::map<WorkerId, Acknowledged> answers;
  for (auto& [index, part] : parts_) {
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

void WorkDealer::ReportClosed() {
  for (auto& [index, part] : parts_) {
    if (const std::optional<PartClosed> closed = part.TakeClosed()) {
      out_.emplace_back(*closed);
    }
  }
}

std::uint64_t WorkDealer::StoredExamples() const {
  std::uint64_t sum = 0;
  for (std::uint32_t index = 0; index < options_.parts; ++index) {
    if (const auto part = parts_.find(index); part != parts_.end()) {
      sum += part->second.ledger().epoch == epoch_ ? part->second.stored_examples() : 0;
    } else if (foreign_[index].epoch == epoch_) {
      sum += foreign_[index].counted_examples;
    }
  }
  return sum;
}

// Only what is stored counts: a decision must not be undone by the loss of this process.
bool WorkDealer::EpochIsComplete() const {
  const auto first = parts_.find(0);
  return open_ && first != parts_.end() && first->second.ready() &&
         static_cast<double>(StoredExamples()) >=
             options_.epoch_completion * static_cast<double>(options_.train_examples);
}

void WorkDealer::ReportEnded() {
  if (!reported_ended_ && EpochIsComplete()) {
    ADAMANT_FAILPOINT("epoch/enough");
    reported_ended_ = true;
    out_.emplace_back(EpochEnded{.epoch = epoch_});
  }
}

}  // namespace adamant::data_server
