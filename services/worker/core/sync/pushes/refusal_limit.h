#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

/// Pushes that held NaN or infinity, one after the other: so many in a row mean that training
/// diverges. Threads: one at a time.
class RefusalLimit {
 public:
  /// Both must outlive this.
  RefusalLimit(const UpdatePlan& plan, const ShardLayout& layout) : plan_(plan), layout_(layout) {}

  /// A push was learned.
  void OnAcknowledged() { in_a_row_ = 0; }

  /// A push at this progress (Batch) was refused, for `culprit` if that is not null. Errors:
  /// InvalidArgument when it is one too many.
  absl::Status OnRefused(const PushedShard* culprit, std::uint64_t progress);

  /// Returns whether there was one too many.
  [[nodiscard]] bool reached() const { return reached_; }

 private:
  const UpdatePlan& plan_;
  const ShardLayout& layout_;
  std::uint32_t in_a_row_ = 0;
  bool reached_ = false;
};

}  // namespace adamant::worker
