#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "services/worker/core/base/float_buffer.h"

namespace adamant::worker {

/// The values of one snapshot, for evaluation: written by the exchange loop while no thread reads.
/// Threads: as named. Lock-free; waiting is the caller's (Notifier).
class EvaluationWeights {
 public:
  explicit EvaluationWeights(std::size_t elements) : values_(elements) {}

  // --- Training threads

  enum class Begun { kReady, kNotYet, kMissing };

  /// kReady: values() are those of `snapshot` until End. kMissing: a newer one is evaluated by now.
  Begun Begin(std::uint64_t snapshot) {
    readers_.fetch_add(1);
    if (loaded_.load() == snapshot) {
      return Begun::kReady;
    }
    readers_.fetch_sub(1);
    return snapshot < newest_.load() ? Begun::kMissing : Begun::kNotYet;
  }

  void End() { readers_.fetch_sub(1); }

  [[nodiscard]] std::span<const float> values() const { return values_.span(); }

  // --- The exchange loop

  /// No new reader starts from here on; whether the last one is gone, so that values may be
  /// written.
  bool Clear() {
    loaded_.store(0);
    return readers_.load() == 0;
  }

  [[nodiscard]] std::span<float> writable() { return values_.span(); }

  void SetLoaded(std::uint64_t snapshot) { loaded_.store(snapshot); }
  void SetNewest(std::uint64_t snapshot) { newest_.store(snapshot); }

 private:
  FloatBuffer values_;
  std::atomic<std::uint64_t> loaded_{0};  // 0: none
  std::atomic<std::uint64_t> newest_{0};  // asked for
  std::atomic<std::uint32_t> readers_{0};
};

}  // namespace adamant::worker
