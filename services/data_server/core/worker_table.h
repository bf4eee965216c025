#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "services/common/base/clock.h"
#include "services/data_server/core/messages.h"

namespace adamant::data_server {

/// The workers that are here, and the leases they hold.
///
/// A lease takes a place of its worker's window until the worker acknowledges it or hands it back.
/// It ends earlier when the worker is silent for the lease time; the batch may then be dispatched
/// again, though the place stays taken. After a new Hello of the same process nobody knows which of
/// its batches arrived: the window is free again, and the old leases end after the lease time
/// unless their results come first. Threads: one thread at a time.
class WorkerTable {
 public:
  struct Held {
    BatchId batch;
    bool ended = false;       // its batch was given back to the queue
    bool old_stream = false;  // dispatched before the last Hello
  };
  struct Worker {
    WorkerId id;
    std::uint32_t window = 0;
    std::uint32_t taken = 0;  // places of the window
    bool connected = true;
    bool in_membership = false;  // of the last view that came after its Hello
    bool told_drained = false;   // since its last batch or the epoch's begin
    Clock::TimePoint last_heard;
    Clock::TimePoint old_leases_end;
    std::map<std::uint64_t, Held> leases;  // by id
  };

  /// `first_lease`: ids count up from here.
  WorkerTable(Clock::Duration lease_time, std::uint64_t first_lease);

  /// A Hello. Returns why it is refused, or "". Batches that come back because a process was
  /// replaced are appended to `lost`.
  std::string Admit(const Hello& hello, Clock::TimePoint now, std::vector<BatchId>& lost);

  /// The worker of this id, or null.
  Worker* Find(WorkerId id);

  /// By slot.
  std::map<std::uint32_t, Worker>& workers() { return workers_; }
  [[nodiscard]] const std::map<std::uint32_t, Worker>& workers() const { return workers_; }

  /// Takes a place of the worker's window; returns the lease's id.
  std::uint64_t Grant(Worker& worker, BatchId batch);

  /// Returns true if the worker can be dispatched a batch now.
  [[nodiscard]] bool CanTake(const Worker& worker, Clock::TimePoint now) const;

  /// Gives the place of a lease back. The lease, or nothing if the worker does not hold exactly it.
  std::optional<Held> Release(Worker& worker, const Lease& lease);

  /// Ends the leases that time has ended; their batches are appended to `lost`.
  void Expire(Clock::TimePoint now, std::vector<BatchId>& lost);

  /// Removes the workers that the view lacks; their ids are returned, the batches of their leases
  /// appended to `lost`.
  std::vector<WorkerId> Retain(const std::vector<WorkerId>& members, std::vector<BatchId>& lost);

  /// Forgets the leases for which `matches(batch)` is true; their places are free.
  template <class Predicate>
  void Forget(const Predicate& matches) {
    for (auto& [slot, worker] : workers_) {
      for (auto it = worker.leases.begin(); it != worker.leases.end();) {
        it = matches(it->second.batch) ? Remove(worker, it) : std::next(it);
      }
    }
  }

  /// Returns when Expire has something to do, if nothing is heard until then.
  [[nodiscard]] std::optional<Clock::TimePoint> NextExpiry() const;

 private:
  using Leases = std::map<std::uint64_t, Held>;

  static Leases::iterator Remove(Worker& worker, Leases::iterator lease);
  static void EndAll(Worker& worker, bool old_stream_only, std::vector<BatchId>& lost);

  const Clock::Duration lease_time_;
  std::uint64_t next_lease_;
  std::map<std::uint32_t, Worker> workers_;
  std::map<std::uint32_t, Incarnation> newest_;  // highest incarnation seen, by slot
};

}  // namespace adamant::data_server
