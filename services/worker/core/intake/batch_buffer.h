#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/queues.h"

namespace adamant::worker {

/// A batch as it was received.
struct Batch {
  Lease lease;
  std::uint32_t examples = 0;
  std::uint64_t job_examples = 0;    ///< acknowledged when it was dispatched
  std::uint64_t ahead_examples = 0;  ///< under way then, before it, and half its own
  std::uint64_t snapshot = 0;        ///< kEvaluate
  std::vector<std::uint8_t> pixels;  ///< room for a full batch: [examples, channels, height, width]
  std::vector<std::int32_t> labels;  ///< room for a full batch

  /// Returns how far the job is with this batch, in examples: what schedules count.
  [[nodiscard]] std::uint64_t progress() const { return job_examples + ahead_examples; }
};

/// Batches between those who receive them and the training threads, in a fixed number of slots.
/// Threads: any. Lock-free; waiting is the caller's (Notifier).
class BatchBuffer {
 public:
  BatchBuffer(std::size_t slots, std::size_t batch_size, std::size_t example_bytes);

  /// A slot to fill; null while all are in use.
  Batch* TakeFree() { return free_.Pop().value_or(nullptr); }

  /// Queues a filled slot.
  void Put(Batch* batch) { ready_.Push(batch); }

  /// The oldest batch; null when there is none.
  Batch* Take() { return ready_.Pop().value_or(nullptr); }

  /// Gives a slot back.
  void Recycle(Batch* batch) { free_.Push(batch); }

 private:
  std::vector<std::unique_ptr<Batch>> slots_;
  MpmcQueue<Batch*> free_;
  MpmcQueue<Batch*> ready_;
};

}  // namespace adamant::worker
