#pragma once

#include <optional>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/entry_log.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica_host.h"

namespace adamant::parameter_server {

/// Releases the configuration of a primary that hands its bucket over, once its whole log is
/// committed, and tells the successor, again and again. From then on the configuration is over for
/// this primary, whatever the hint says later: the successor takes over, or falls silent and is
/// dropped. Threads: one at a time.
class PrimaryTransfer {
 public:
  /// The arguments after `bucket` must outlive this.
  PrimaryTransfer(BucketId bucket,
                  ReplicaHost& host,
                  const Configuration& configuration,
                  const EntryLog& log)
      : bucket_(bucket), host_(host), configuration_(configuration), log_(log) {}

  void Begin(const ServerId& successor, Clock::TimePoint now);

  /// Another configuration begins.
  void Clear() { successor_.reset(); }

  /// Releases the configuration, or says so again, if it is time.
  void Release(Clock::TimePoint now);

  /// Returns when Release has something to do though nothing happens.
  [[nodiscard]] Clock::TimePoint NextRelease() const;

 private:
  const BucketId bucket_;
  ReplicaHost& host_;
  const Configuration& configuration_;
  const EntryLog& log_;
  std::optional<ServerId> successor_;
  Clock::TimePoint next_release_{};
};

}  // namespace adamant::parameter_server
