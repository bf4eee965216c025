#pragma once

#include <optional>

#include "services/common/base/clock.h"
#include "services/parameter_server/core/replication/entry_log.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica_host.h"

namespace adamant::parameter_server {

/// Releases the epoch of a primary that hands its bucket over, once its whole log is committed, and
/// tells the heir, again and again. From then on the epoch is over for this primary, whatever the
/// advice says later: the heir takes over, or falls silent and is dropped.
/// Threads: one at a time.
class Handover {
 public:
  /// The arguments after `bucket` must outlive this.
  Handover(BucketId bucket,
           ReplicaHost& host,
           const Configuration& configuration,
           const EntryLog& log)
      : bucket_(bucket), host_(host), configuration_(configuration), log_(log) {}

  void Begin(const Holder& heir, Clock::TimePoint now);

  /// Another epoch begins.
  void Clear() { heir_.reset(); }

  /// Releases the epoch, or says so again, if it is time.
  void Release(Clock::TimePoint now);

  /// Returns when Release has something to do though nothing happens.
  [[nodiscard]] Clock::TimePoint NextRelease() const;

 private:
  const BucketId bucket_;
  ReplicaHost& host_;
  const Configuration& configuration_;
  const EntryLog& log_;
  std::optional<Holder> heir_;
  Clock::TimePoint next_release_{};
};

}  // namespace adamant::parameter_server
