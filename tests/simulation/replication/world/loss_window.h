#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "services/common/base/ids.h"
#include "tests/simulation/replication/world/disk.h"
#include "tests/simulation/replication/world/setup.h"

namespace adamant::replication_simulation {

/// What the end of a replica may take, as docs/replication.md promises: what was acknowledged in
/// the last interval of flushing, which counts from when the replica knows that an update is
/// committed. Time in which it could not store does not count. Threads: one.
class LossWindow {
 public:
  explicit LossWindow(const Setup& setup) : setup_(setup) {}

  /// A replica hears what its primary, which serves, has said at `said`: when all was committed
  /// that had been acknowledged. Or the primary has served until `said`.
  void Hears(const ps::ServerId& replica,
             BucketId bucket,
             Clock::TimePoint said,
             Clock::TimePoint now);

  /// As the primary that serves it knows all, until Hears is called.
  void Serves(const ps::ServerId& primary, BucketId bucket, Clock::TimePoint now) {
    Hears(primary, bucket, Clock::TimePoint::max(), now);
  }
  void ServesNoMore(const ps::ServerId& primary, BucketId bucket, Clock::TimePoint now);

  /// It gives the bucket up: it may have been replaced long before it heard.
  void Leaves(const ps::ServerId& replica, BucketId bucket) { known_.erase({replica, bucket}); }

  /// What was acknowledged before then is on the disk of this replica, which ended at `end`.
  [[nodiscard]] Clock::TimePoint SafeBefore(const ps::ServerId& replica,
                                            BucketId bucket,
                                            Clock::TimePoint end,
                                            const Disk& disk) const;

 private:
  struct Knowledge {
    Clock::TimePoint since;
    Clock::TimePoint said;
  };

  const Setup& setup_;
  std::map<std::pair<ps::ServerId, BucketId>, std::vector<Knowledge>> known_;  // by time
};

}  // namespace adamant::replication_simulation
