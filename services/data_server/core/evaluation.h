#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "services/data_server/core/batch_queue.h"
#include "services/data_server/core/messages.h"

namespace adamant::data_server {

/// The evaluation of one snapshot: every validation example exactly once. Nothing of it is stored;
/// a data server that starts anew evaluates anew.
/// Threads: one thread at a time.
class Evaluation {
 public:
  /// `most_frequent`: of the examples, those of the class that has most of them.
  Evaluation(const Evaluate& command,
             std::uint32_t examples,
             std::uint32_t batch_size,
             std::uint64_t most_frequent);

  [[nodiscard]] const Evaluate& command() const { return command_; }

  BatchQueue& queue() { return queue_; }
  [[nodiscard]] const BatchQueue& queue() const { return queue_; }

  [[nodiscard]] BatchId Batch(std::uint32_t index) const;

  /// A lease was given for a batch: only results under such leases count.
  void Dispatched(std::uint64_t lease, std::uint32_t batch) { leases_.emplace(lease, batch); }

  /// Takes the result if its batch was dispatched under its lease and is not evaluated yet; returns
  /// whether it did, that is, whether the result counts.
  bool Count(const LeaseResult& result);

  /// Every example is evaluated.
  [[nodiscard]] bool done() const { return left_ == 0; }

  /// Sums in the order of the examples, so that they do not depend on who was faster.
  [[nodiscard]] Evaluated Sum() const;

 private:
  struct Result {
    double loss_sum = 0;
    std::uint64_t correct = 0;
  };

  const Evaluate command_;
  const std::uint32_t examples_;
  const std::uint64_t most_frequent_;
  BatchQueue queue_;
  std::vector<Result> results_;  // by batch
  std::uint32_t left_;           // batches
  std::map<std::uint64_t, std::uint32_t> leases_;
};

}  // namespace adamant::data_server
