#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/resources/pod_nodes.h"
#include "operator/kube/status/job_objects.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Choice of the parameter server that should rather run elsewhere: where several share a node or a
/// zone, as there was no other, and one has room now. One at a time is evicted, as it were; it
/// hands over what it has before it ends, and learns it anew.
/// Threads: one.
class ServerMoves {
 public:
  /// `clock` must outlive this.
  explicit ServerMoves(const Clock& clock) : clock_(clock) {}

  /// Returns true if it is time to look for one, provided that one can be spared.
  [[nodiscard]] bool IsDue(const JobObjects& seen) const {
    return seen.all_nodes && clock_.Now() >= next_;
  }

  /// Returns the pod of the server that is to move, and takes note of it; null: none is.
  /// `tolerations`: those of the servers' pods. Requires IsDue.
  const PodView* Choose(const JobObjects& seen,
                        const PodNodes& nodes,
                        const nlohmann::json& tolerations);

  /// Returns true if this pod was deleted to be elsewhere.
  [[nodiscard]] bool Moves(const std::string& uid) const { return uid == moving_; }

 private:
  // Between two that move; longer and longer, as it may be for nothing.
  static constexpr std::chrono::minutes kFirstWait{10};
  static constexpr std::chrono::minutes kLastWait{24 * 60};

  const Clock& clock_;
  std::string moving_;       // UID
  Clock::TimePoint next_{};  // when to look for the next
  std::chrono::minutes wait_{kFirstWait};
};

}  // namespace adamant::kube
