#pragma once

#include <map>

#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"
#include "tests/simulation/engine/local_clock.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/setup/setup.h"

namespace adamant::simulation {

/// How long before the end of a parameter server an update may have been acknowledged that its disk
/// lacks.
/// Threads: one.
class LossWindow {
 public:
  /// Both must outlive this.
  LossWindow(const Setup& setup, const LocalClock& clock) : setup_(setup), clock_(clock) {}

  /// It cannot write for this long.
  void Hinder(Clock::Duration time) { hindered_ += time; }

  /// It hears from the bucket's primary, which serves, and hears itself meanwhile. A member does
  /// not write what it does not know to be committed, and who has taken over cannot commit before
  /// it has all members, which may not know where to find it while the controller is away.
  void Hear(BucketId bucket, Clock::TimePoint now);
  [[nodiscard]] bool HasHeard(BucketId bucket) const { return hearing_.contains(bucket); }

  /// Of a bucket, as the server ends now.
  [[nodiscard]] Clock::Duration At(BucketId bucket, Death death, Clock::TimePoint now);

 private:
  struct Hearing {
    Clock::TimePoint last;
    Clock::Duration deaf{0};  // all silences before
  };

  const Setup& setup_;
  const LocalClock& clock_;
  Clock::Duration hindered_{0};
  std::map<BucketId, Hearing> hearing_;
};

}  // namespace adamant::simulation
