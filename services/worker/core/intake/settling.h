#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/queues.h"

namespace adamant::worker {

/// State in which pushes are paused and not all are counted yet: whoever receives batches waits for
/// no slot then, for the answers stand behind them. Keeps the batches that found none meanwhile.
/// Threads: active on any, the others one at a time.
class Settling {
 public:
  /// `slot_notifier` is rung when no slot is waited for any more; must outlive this.
  explicit Settling(Notifier& slot_notifier) : slot_notifier_(slot_notifier) {}

  [[nodiscard]] bool active() const { return active_.load(std::memory_order_acquire); }

  /// There was no slot for this batch.
  void OnNoSlot(const Lease& lease) { no_slot_.push_back(lease); }

  /// `due`: whether pushes are paused and not all are counted yet. Returns the batches to hand
  /// back: all, once it is over; before, they would be dispatched again and again.
  std::vector<Lease> Update(bool due) {
    if (due) {
      if (!active_.exchange(true, std::memory_order_acq_rel)) {
        slot_notifier_.Notify();
      }
      return {};
    }
    active_.store(false, std::memory_order_release);
    return std::exchange(no_slot_, {});
  }

 private:
  Notifier& slot_notifier_;
  std::atomic<bool> active_{false};
  std::vector<Lease> no_slot_;
};

}  // namespace adamant::worker
