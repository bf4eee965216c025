#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/parameter_servers.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Number of copies of each bucket, and who needs which.
/// Threads: one thread at a time.
class BucketCopies {
 public:
  using TimePoint = Clock::TimePoint;

  /// Once all buckets have been served, the job waits for their other copies at most this long,
  /// whatever is lost meanwhile: servers that die again and again must not keep it from beginning.
  static constexpr std::chrono::milliseconds kCopyTime{10'000};

  /// The arguments must outlive this.
  BucketCopies(const JobSettings& settings,
               const Configurations& configurations,
               const ParameterServers& servers)
      : settings_(settings), configurations_(configurations), servers_(servers) {}

  /// The configurations have been settled: looks which buckets are served.
  void OnSettled(TimePoint now);

  /// Every process is being ended: nothing is served any more, and the wait for copies begins anew.
  void Forget();

  /// Every bucket was served when the configurations were settled last.
  [[nodiscard]] bool all_served() const { return all_served_; }

  /// Every bucket is served and has its copies, or as many as can be had for now.
  [[nodiscard]] bool IsComplete(TimePoint now) const;

  /// Returns when time alone makes it so.
  [[nodiscard]] std::optional<TimePoint> NextTimer(TimePoint now) const;

  /// Every bucket is served and has its copies on servers that run.
  [[nodiscard]] bool HasAllCopies() const;

  /// Of the replicas of its configuration those that run.
  [[nodiscard]] std::size_t LiveCopiesOf(BucketId bucket) const;

  /// A bucket cannot do without the disk of this slot: of its other replicas none runs, or too few
  /// to leave this one out while nothing proves its death, as whoever opens the disk next would. So
  /// it is with a bucket that nobody has served yet: it goes to another server only when that is
  /// proved.
  [[nodiscard]] bool NeedsDiskOf(std::uint32_t slot) const;

 private:
  const JobSettings& settings_;
  const Configurations& configurations_;
  const ParameterServers& servers_;
  bool all_served_ = false;
  std::optional<TimePoint> first_served_;  // when all were, for the first time
};

}  // namespace adamant::controller
