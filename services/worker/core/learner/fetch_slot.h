#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// The one fetch that is under way, between the exchange loop, which fills it, and the training
/// threads, one of which applies it.
///
///   Idle → Requested (thread) → Ready (loop) → Applying → Idle (thread)
///                                 Ready ⇄ Held (loop)
///
/// While the loop holds the slot, or the slot is Idle or Requested, no thread applies, and the loop
/// may retire and sum accumulators.
/// Threads: as named. Lock-free; waiting is the caller's (Notifier).
class FetchSlot {
 public:
  explicit FetchSlot(std::size_t elements) : values_(elements) {}

  /// The fetched values: the loop's while Requested or Held, the thread's while Applying.
  [[nodiscard]] std::span<float> values() { return values_.span(); }

  /// Names the fetch that came last.
  [[nodiscard]] FetchId id() const { return id_.load(std::memory_order_acquire); }

  // --- A training thread

  enum class Begun { kApply, kNothing, kNotYet };

  /// kApply: the values are there, apply them and call EndApply. kNothing: nothing was requested.
  Begun BeginApply() {
    State state = kReady;
    if (state_.compare_exchange_strong(state, kApplying, std::memory_order_acq_rel)) {
      return Begun::kApply;
    }
    return state == kIdle ? Begun::kNothing : Begun::kNotYet;
  }

  void EndApply() { state_.store(kIdle, std::memory_order_release); }

  /// Idle → Requested.
  void Request() { state_.store(kRequested, std::memory_order_release); }

  // --- The exchange loop

  void SetId(FetchId id) { id_.store(id, std::memory_order_release); }

  /// Requested → Ready: all values are there.
  void Complete() { state_.store(kReady, std::memory_order_release); }

  /// Keeps threads from applying until Release. False while one applies; it rings when it is done.
  bool Hold() {
    State state = kReady;
    return state_.compare_exchange_strong(state, kHeld, std::memory_order_acq_rel) ||
           state != kApplying;
  }

  void Release() {
    State state = kHeld;
    state_.compare_exchange_strong(state, kReady, std::memory_order_acq_rel);
  }

  /// Drops what was requested; only while no thread applies.
  void Abandon() { state_.store(kIdle, std::memory_order_release); }

 private:
  enum State : std::uint32_t { kIdle, kRequested, kReady, kHeld, kApplying };

  std::atomic<State> state_{kIdle};
  FloatBuffer values_;
  std::atomic<FetchId> id_{0};
};

}  // namespace adamant::worker
