#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace adamant::worker {

/// Age of a worker's weights: if others have trained for long since its last batch, or before its
/// first, as when one worker trains alone first, they are outdated, and it needs the values of now.
/// Threads: any. Lock-free.
class WeightAge {
 public:
  explicit WeightAge(std::size_t batch_size) : batch_size_(batch_size) {}

  /// So many workers of the job run.
  void SetWorkers(std::uint32_t workers) { workers_.store(workers, std::memory_order_release); }

  /// A batch was trained, or is to be trained with the values of now, before which the job had
  /// counted so many examples.
  void OnBatch(std::uint64_t job_examples) {
    job_examples_.store(job_examples, std::memory_order_relaxed);
  }

  /// Returns whether the weights are outdated for a batch before which the job had counted so many.
  [[nodiscard]] bool Outdated(std::uint64_t job_examples) const {
    const std::uint64_t workers = workers_.load(std::memory_order_acquire);
    const std::uint64_t last = job_examples_.load(std::memory_order_relaxed);
    const std::uint64_t behind = job_examples - std::min(job_examples, last);
    const std::uint64_t batches = kBatches * (last > 0 ? 2 * workers : 1);
    return workers > 1 && behind >= batches * batch_size_;
  }

 private:
  /// Batches that a job may have trained when a worker begins with the weights it has; and twice as
  /// many for each worker since its last batch.
  static constexpr std::uint64_t kBatches = 32;

  const std::size_t batch_size_;
  std::atomic<std::uint32_t> workers_{1};
  std::atomic<std::uint64_t> job_examples_{0};  // of the newest batch
};

}  // namespace adamant::worker
