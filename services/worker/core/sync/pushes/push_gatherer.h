#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "services/worker/core/base/messages.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/asynchrony/asynchrony.h"
#include "services/worker/core/sync/pushes/push_payload.h"

namespace adamant::worker {

/// Content that is to be pushed together.
struct GatheredPush {
  std::unique_ptr<PushContent> content;
  std::vector<LeaseResult> results;      ///< of the batches in it
  bool finite = true;                    ///< else it must not be pushed
  const PushedShard* culprit = nullptr;  ///< the first shard that is not finite, if one is to blame

  /// The accumulator with the sum.
  [[nodiscard]] Accumulator& sum() const { return *content->parts.front().accumulator; }

  /// In its batches.
  [[nodiscard]] std::uint64_t examples() const;
};

/// Sums what training threads have handed over, each thread in turn.
/// Threads: one at a time, beside the training threads.
class PushGatherer {
 public:
  /// Both must outlive this.
  PushGatherer(Learner& learner, const Asynchrony& asynchrony)
      : learner_(learner), asynchrony_(asynchrony) {}

  /// Takes one accumulator of each thread whose first event hands one over, at most
  /// UpdatePlan::max_summed; nullopt when there is none.
  std::optional<GatheredPush> Gather();

  /// Returns what servers are to correct their rule by for a push of this sum.
  [[nodiscard]] Correction CorrectionFor(const Accumulator& sum) const;

 private:
  std::vector<PushContent::Part> FindParts();
  void Take(const std::vector<PushContent::Part>& parts);
  void Freshen(Accumulator& sum) const;

  Learner& learner_;
  const Asynchrony& asynchrony_;
  std::size_t next_thread_ = 0;
};

}  // namespace adamant::worker
