#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/data_server/core/batch_scheduler.h"

namespace adamant::data_server {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The records of all parts, as the parameter servers keep them.
class FakeRecords {
 public:
  [[nodiscard]] RecordRead Read(const ReadRecord& request) const {
    const auto it = records_.find(request.part);
    return {.request = request.request,
            .record = it == records_.end() ? std::nullopt : std::optional(it->second)};
  }

  RecordWritten Write(const WriteRecord& request) {
    VersionedRecord& record = records_[request.part];
    if (record.version != request.expected_version) {
      return {.request = request.request, .conflict = true};
    }
    record = {.version = record.version + 1, .value = request.value};
    return {.request = request.request, .version = record.version};
  }

  [[nodiscard]] std::optional<Ledger> Get(std::uint32_t part) const {
    const auto it = records_.find(part);
    return it == records_.end() ? std::nullopt
                                : std::optional(ParseLedger(it->second.value).value());
  }

 private:
  std::map<std::uint32_t, VersionedRecord> records_;
};

// One scheduler whose record requests are answered at once, and what it said.
class SchedulerHarness {
 public:
  explicit SchedulerHarness(const BatchSchedulerOptions& options) : scheduler(options) {}

  void Send(const Input& input) {
    std::deque<Input> inputs = {input};
    while (!inputs.empty()) {
      const std::vector<Output> outputs = scheduler.Handle(inputs.front(), now);
      inputs.pop_front();
      for (const Output& output : outputs) {
        if (const auto* read = std::get_if<ReadRecord>(&output); read != nullptr && answer) {
          inputs.emplace_back(records.Read(*read));
        } else if (const auto* write = std::get_if<WriteRecord>(&output);
                   write != nullptr && answer) {
          inputs.emplace_back(records.Write(*write));
        } else {
          said.push_back(output);
        }
      }
    }
  }

  // Lets time pass, with a Tick at its end.
  void Wait(Clock::Duration time) {
    now += time;
    Send(Tick{});
  }

  // Takes all messages of one type out of what was said.
  template <class T>
  std::vector<T> Take() {
    std::vector<T> taken;
    for (auto it = said.begin(); it != said.end();) {
      if (const T* message = std::get_if<T>(&*it)) {
        taken.push_back(*message);
        it = said.erase(it);
      } else {
        ++it;
      }
    }
    return taken;
  }

  std::vector<std::uint32_t> TakeDispatchedTo(WorkerId worker) {
    std::vector<std::uint32_t> batches;
    for (auto it = said.begin(); it != said.end();) {
      const Dispatch* dispatch = std::get_if<Dispatch>(&*it);
      if (dispatch != nullptr && dispatch->to == worker) {
        batches.push_back(dispatch->lease.batch.index);
        leases[worker].push_back(dispatch->lease);
        it = said.erase(it);
      } else {
        ++it;
      }
    }
    return batches;
  }

  // The lease under which the worker was dispatched a batch last.
  [[nodiscard]] Lease LeaseOf(WorkerId worker, std::uint32_t batch) const {
    const std::vector<Lease>& all = leases.at(worker);
    return *std::find_if(
        all.rbegin(), all.rend(), [batch](const Lease& l) { return l.batch.index == batch; });
  }

  void SendAcknowledge(WorkerId worker, const std::vector<std::uint32_t>& batches) {
    Acknowledge message{.worker = worker, .results = {}};
    for (const std::uint32_t batch : batches) {
      message.results.push_back({.lease = LeaseOf(worker, batch)});
    }
    Send(message);
  }

  BatchScheduler scheduler;
  FakeRecords records;
  bool answer = true;  // record requests at once
  Clock::TimePoint now = Clock::TimePoint(seconds(1000));
  std::vector<Output> said;
  std::map<WorkerId, std::vector<Lease>> leases;
};

}  // namespace adamant::data_server
