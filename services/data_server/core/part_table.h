#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/data_server/core/ledger.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/core/order.h"
#include "services/data_server/core/part.h"
#include "services/data_server/core/record_requests.h"

namespace adamant::data_server {

struct PartTableOptions {
  std::uint32_t slot = 0;                                          ///< of this data server
  Incarnation incarnation = 1;                                     ///< of this data server
  Clock::Duration poll_interval = std::chrono::milliseconds(200);  ///< of other parts' records
  Clock::Duration reload_delay = std::chrono::seconds(1);  ///< after another server wrote ours
};

/// All parts of the training data in the epoch: those that this data server owns, and what the
/// records of the others last said.
/// Threads: one thread at a time.
class PartTable {
 public:
  using TimePoint = Clock::TimePoint;

  /// All that is to be sent is appended to `out`. `layout` and `out` must outlive this.
  PartTable(const PartLayout& layout, const PartTableOptions& options, std::vector<Output>& out);

  [[nodiscard]] const PartLayout& layout() const { return layout_; }

  // --- The epoch

  /// Opens the epoch in all parts, and begins to read the records of the others.
  void Open(DataEpoch epoch, TimePoint now);

  /// Closes it. `report`: to a controller that has asked.
  void Close(DataEpoch epoch, bool report);

  /// Opened or closed last; 0: none was.
  [[nodiscard]] DataEpoch epoch() const { return epoch_; }

  /// It has been opened, and not been closed since.
  [[nodiscard]] bool open() const { return open_; }

  // --- Who owns which part

  /// `owners`, by part: slot of the data server that dispatches it. Reads the records of parts that
  /// are new here; returns the parts that this server owns no more.
  std::vector<std::uint32_t> SetOwners(const std::vector<std::uint32_t>& owners);

  /// The part, or null if it is not ours.
  Part* Find(std::uint32_t part);
  [[nodiscard]] const Part* Find(std::uint32_t part) const;

  /// By part.
  [[nodiscard]] const std::map<std::uint32_t, Part>& owned() const { return owned_; }

  /// Returns what the record of another server's part last said, without the bitmap.
  [[nodiscard]] const Ledger& foreign(std::uint32_t part) const { return foreign_[part]; }

  // --- Records

  /// Returns the part if it was loaded anew: leases on its batches are void.
  std::optional<std::uint32_t> OnRead(const RecordRead& answer, TimePoint now);
  void OnWritten(const RecordWritten& answer);

  /// Sends the writes that are due.
  void StartWrites();

  /// Sends workers the answers that are due, and the controller what it asked to hear of closed
  /// parts.
  void SendAnswers();
  void ReportClosed();

  /// Starts and stops the reading of other parts' records at the poll interval.
  void StartPolling(TimePoint now);
  void StopPolling() { requests_.StopPolling(); }

  /// Sends the reads that are due.
  void ReadDue(TimePoint now);

  /// Returns when ReadDue has something to do.
  [[nodiscard]] std::optional<TimePoint> NextWake() const { return requests_.NextWake(); }

  // --- Batches

  struct Choice {
    BatchId batch;
    bool again = false;  ///< a worker that had it was lost
  };

  /// Takes out the batch that is to be dispatched next: those that came back go first, whatever
  /// part they are of.
  std::optional<Choice> Next();

  /// Returns true if Next would find a batch, or may when a part's record has been read.
  [[nodiscard]] bool MayHaveNext();

  // --- Sums over all parts

  /// Counted in all epochs, as known here.
  [[nodiscard]] std::uint64_t JobExamples() const;

  /// Returns where the middle of a batch that was just taken will be, if all that are out before it
  /// arrive: schedules then do not lag behind by what is under way, and the first batch is not at
  /// 0. In examples from JobExamples on.
  [[nodiscard]] std::uint64_t AheadExamples(const BatchId& dispatched) const;

  /// Counted in this epoch, of what is stored.
  [[nodiscard]] std::uint64_t StoredExamples() const;

  /// The sums of this epoch, if all parts are closed, which is stored.
  [[nodiscard]] std::optional<UnattendedEpoch> ClosedEpoch() const;

 private:
  void Own(std::uint32_t part);
  void Poll(TimePoint now);
  void ReadForeign(std::uint32_t part, const RecordRead& answer);

  // Constant after construction.
  const PartLayout& layout_;
  const PartTableOptions options_;

  std::vector<Output>& out_;
  RecordRequests requests_;
  std::map<std::uint32_t, Part> owned_;
  std::vector<Ledger> foreign_;  // by part
  DataEpoch epoch_ = 0;
  bool open_ = false;
};

}  // namespace adamant::data_server
