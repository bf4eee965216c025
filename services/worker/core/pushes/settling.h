#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "services/worker/core/messages.h"
#include "services/worker/core/replica.h"

namespace adamant::worker {

/// Commands::settling, and the batches that found no slot meanwhile.
/// Threads: one at a time, beside those who receive batches.
class Settling {
 public:
  explicit Settling(Replica& replica) : replica_(replica) {}  // must outlive this

  /// There was no slot for this batch.
  void OnNoSlot(const Lease& lease) { no_slot_.push_back(lease); }

  /// `due`: whether pushes are held and not all are counted yet. Returns the batches to hand back:
  /// all, once it is over; before, they would be dealt again and again.
  std::vector<Lease> Update(bool due) {
    auto& settling = replica_.commands.settling;
    if (due) {
      if (!settling.exchange(true, std::memory_order_acq_rel)) {
        replica_.slot_bell.Ring();
      }
      return {};
    }
    settling.store(false, std::memory_order_release);
    return std::exchange(no_slot_, {});
  }

 private:
  Replica& replica_;
  std::vector<Lease> no_slot_;
};

}  // namespace adamant::worker
