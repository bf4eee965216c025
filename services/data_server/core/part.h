#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/ids.h"
#include "services/data_server/core/batch_queue.h"
#include "services/data_server/core/ledger.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/core/order.h"

namespace adamant::data_server {

/// One part of the training data in the hands of this data server: its ledger, what is still to be
/// dispatched, and the results that wait for the ledger to be stored.
///
/// One write of the record is under way at a time; what is counted meanwhile goes into the next. A
/// result is answered when the value that holds it is stored. When a write fails because another
/// server wrote, the part dispatches nothing until its record is read again; results not yet
/// answered are then judged anew. Threads: one thread at a time.
class Part {
 public:
  /// `layout` must outlive this. `writer_slot`, `writer_incarnation`: of this data server.
  Part(const PartLayout& layout,
       std::uint32_t part,
       std::uint32_t writer_slot,
       Incarnation writer_incarnation);

  // --- The record

  /// After Conflict, the record has been read: whether it holds what we were writing, so that the
  /// write had succeeded and only its answer was missed. If not, another server wrote: what was
  /// under way is given up, and the part waits for Load.
  bool ResolveConflict(const std::optional<VersionedRecord>& record);

  /// Takes the record over. Errors: DataLoss, FailedPrecondition for a value that this job cannot
  /// have written.
  absl::Status Load(const std::optional<VersionedRecord>& record);

  /// The write that is due, if any; it is under way from now on. `request` is left for the caller.
  std::optional<WriteRecord> StartWrite();

  /// The write under way succeeded.
  void Stored(std::uint64_t version);

  /// The write under way failed: the part is not ready until ResolveConflict or Load.
  void Conflict() { ready_ = false; }

  /// Returns true if ResolveConflict is due.
  [[nodiscard]] bool in_conflict() const { return !ready_ && under_way_.has_value(); }

  /// The record is loaded and ours, as far as we know.
  [[nodiscard]] bool ready() const { return ready_; }

  /// The record is what `ledger` says.
  [[nodiscard]] bool stored() const { return ready_ && !dirty_ && !under_way_; }

  // --- The epoch. What is demanded while the part is not ready is done by Load.

  /// Begins the epoch, unless it or a later one has begun.
  void Open(DataEpoch epoch);

  /// Closes the epoch, unless a later one has begun. `report`: to a controller that has asked.
  void Close(DataEpoch epoch, bool report);

  /// Part 0, in its stored and closed epoch: begins the next of the data tier's own accord. Not
  /// demanded: if another server has written the record, what that one wrote stands.
  void Succeed(const UnattendedEpoch& ended);

  /// A controller knows of the epochs before this one.
  void Confirm(DataEpoch epoch);

  /// Returns what to tell the controller, once after each Close that it asked for, when the closed
  /// ledger is stored.
  std::optional<PartClosed> TakeClosed();

  // --- Batches

  /// Returns what can be dispatched; null while nothing may be.
  BatchQueue* queue() { return ready_ && !ledger_.closed ? &queue_ : nullptr; }
  [[nodiscard]] const BatchQueue* queue() const {
    return ready_ && !ledger_.closed ? &queue_ : nullptr;
  }

  /// A batch taken from the queue comes back; one of another epoch is ignored.
  void Return(const BatchId& batch, bool lost);

  /// A batch that a lost worker had is dispatched again.
  void CountRetrained(std::uint32_t batch);

  /// A worker's result. Results for batches that do not exist are ignored.
  void Judge(WorkerId worker, const Lease& lease);

  /// The results that can be answered now.
  struct Answer {
    WorkerId worker;
    Lease lease;
    bool duplicate = false;
  };
  std::vector<Answer> TakeAnswers();

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }

  /// Of the value stored last.
  [[nodiscard]] DataEpoch stored_epoch() const { return stored_epoch_; }

  /// Counted in this epoch, in the value stored last.
  [[nodiscard]] std::uint64_t stored_examples() const { return stored_examples_; }

 private:
  // Pending results go through: waiting_ (not judged) -> judged_ (will be in the next value) ->
  // writing_ (in the value under way) -> answers_.
  void JudgeNow(WorkerId worker, const Lease& lease);
  [[nodiscard]] bool IsPending(WorkerId worker, const Lease& lease) const;
  [[nodiscard]] absl::Status CheckLayout(const Ledger& ledger) const;
  void Adopt(Ledger ledger, std::uint64_t version);
  void ApplyCommands();
  void Begin(DataEpoch epoch);

  // Constant after construction.
  const PartLayout& layout_;
  const std::uint32_t part_;
  const std::uint32_t writer_slot_;
  const Incarnation writer_incarnation_;

  bool ready_ = false;
  std::uint64_t version_ = 0;  // of the record; 0: absent
  Ledger ledger_;              // `counted` is kept in queue_
  BatchQueue queue_;
  bool dirty_ = false;  // ledger_ differs from the value under way or stored
  struct Write {
    std::string value;
    DataEpoch epoch = 0;
    std::uint64_t counted_examples = 0;
  };
  std::optional<Write> under_way_;  // until its fate is known
  DataEpoch stored_epoch_ = 0;
  std::uint64_t stored_examples_ = 0;

  DataEpoch open_demanded_ = 0;
  DataEpoch close_demanded_ = 0;
  DataEpoch confirmed_ = 0;
  bool report_closed_ = false;

  std::vector<Answer> waiting_;
  std::vector<Answer> judged_;
  std::vector<Answer> writing_;
  std::vector<Answer> answers_;
};

}  // namespace adamant::data_server
