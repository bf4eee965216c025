#pragma once

#include <cstdint>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/entry_log.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica_host.h"

namespace adamant::parameter_server {

/// State of a bucket on this server: whether the content is there, the copy of it under way, and
/// the log behind it, whose entries it hands to the host to be stored and applied.
/// Threads: one at a time.
class LocalCopy {
 public:
  /// `host` must outlive this.
  LocalCopy(BucketId bucket, EntryLog::Logging logging, ReplicaHost& host)
      : bucket_(bucket), host_(host), log_(logging) {}

  [[nodiscard]] EntryLog& log() { return log_; }
  [[nodiscard]] const EntryLog& log() const { return log_; }

  /// All that was committed up to the log is there: only then entries may be committed.
  [[nodiscard]] bool has_content() const { return has_content_; }
  void SetHasContent() { has_content_ = true; }

  /// Learner: the copy under way. 0: none.
  [[nodiscard]] std::uint64_t copy() const { return copy_; }
  void EndCopy() { copy_ = 0; }

  /// A copy begins of what was committed up to `base`, whose entry has this origin: it is all that
  /// counts.
  void BeginCopy(std::uint64_t copy, Lsn base, ConfigurationVersion origin);

  /// Takes an entry into the log, behind the others.
  void Keep(const EntryPtr& entry);

  void CommitUpTo(Lsn limit);

  /// Forgets all.
  void Clear();

 private:
  const BucketId bucket_;
  ReplicaHost& host_;
  EntryLog log_;
  bool has_content_ = false;
  std::uint64_t copy_ = 0;
};

}  // namespace adamant::parameter_server
