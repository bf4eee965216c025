#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "services/common/base/ids.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/pushes/push_payload.h"

namespace adamant::worker {

/// The contents of pushes that may be sent (again): those in flight, and those that are
/// acknowledged but not yet on the servers' disks. Nothing is copied: what is retained is exchanged
/// for memory of the store, at most as much as is allowed, so that the accumulator returns to its
/// thread; beyond that the accumulator waits, and in the end its thread. Threads: one at a time;
/// owners of payloads may go on any.
class PushStore {
 public:
  using Contents = std::map<Sequence, std::unique_ptr<PushContent>>;

  /// `learner` must outlive this, and this all payloads. Beside the threads' accumulators at most
  /// `retain_bytes` are taken, as they are needed.
  PushStore(Learner& learner, std::uint64_t retain_bytes);

  /// A push starts.
  void Add(Sequence sequence, std::unique_ptr<PushContent> content);

  /// A push has ended, and counts no more in local weights (Accumulator::live).
  void Retire(Sequence sequence, bool refused);

  /// Pushes up to this one will not be sent again, once they have ended.
  void Release(Sequence sequence);

  /// Empties an accumulator and gives it back to its thread.
  void Recycle(const PushContent::Part& part);

  /// Gives back what is not needed any more.
  void Tidy();

  /// Returns whether a thread has got an accumulator since the last call.
  [[nodiscard]] bool TakeRecycled() { return std::exchange(recycled_, false); }

  /// The bytes of a message that PushTracker has just made.
  PushPayload PayloadOf(const PushMessage& message);

  /// Returns whether the owner of a payload is left.
  [[nodiscard]] bool Pinned() const;

  [[nodiscard]] const Contents& in_flight() const { return in_flight_; }

  /// Returns the contents of pushes that have ended and may be wanted again.
  [[nodiscard]] const Contents& retained() const { return retained_; }
  [[nodiscard]] std::uint64_t retained_bytes() const {
    return retained_accumulators_ * accumulator_bytes_;
  }

  /// Returns whether three quarters of what may be retained are: servers should write to disk.
  [[nodiscard]] bool NearlyFull() const;

 private:
  using ContentPtr = std::unique_ptr<PushContent>;

  bool MoveIn(PushContent& content);
  Accumulator* TakeSpare();
  void RecycleUnpinned();

  Learner& learner_;
  const std::uint64_t accumulator_bytes_;
  const std::uint64_t retain_bytes_;
  const bool any_activations_;

  Contents in_flight_;
  Contents retained_;
  std::uint64_t retained_accumulators_ = 0;
  std::deque<Sequence> moving_in_;   // retained in accumulators of threads, for want of memory
  std::vector<ContentPtr> leaving_;  // done with, but pinned
  std::vector<std::unique_ptr<Accumulator>> memory_;
  std::vector<Accumulator*> spares_;  // of memory_
  Sequence released_ = 0;
  bool recycled_ = false;
};

}  // namespace adamant::worker
