#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/serving/applier.h"
#include "services/parameter_server/core/shards/push_state.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// Checks what writers push, and appends it to the logs of its buckets.
/// Threads: any.
class PushHandler {
 public:
  /// `writers`: worker slots of the job. All that is referred to must outlive this.
  PushHandler(BucketTable& table, Applier& applier, const Clock& clock, std::uint32_t writers);
  PushHandler(const PushHandler&) = delete;
  PushHandler& operator=(const PushHandler&) = delete;

  /// See ParameterServer.
  absl::Status Admit(const WorkerId& writer);
  void RefuseWritersBelow(std::span<const Incarnation> incarnations);
  void Submit(const Push& push, PushDone done);

  /// Updates applied since the start, of what was submitted here.
  [[nodiscard]] std::uint64_t applied() const { return applied_; }

 private:
  /// Next entry of each bucket that gets one, and who waits for it.
  using Appended = std::map<BucketId, std::pair<Entry, Waiting>>;

  [[nodiscard]] bool WellFormed(const Push& push) const;
  [[nodiscard]] bool WellFormed(const Push& push, const ShardUpdate& update) const;
  void Append(BucketTable::Session& session, const Push& push, const PushStatePtr& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Judge(BucketTable::Session& session,
             const LoggedUpdate& update,
             std::uint64_t map_version,
             const Waiting::Answer& asking,
             Appended& appended) const;

  // Constant after construction.
  BucketTable& table_;
  Applier& applier_;
  const Clock& clock_;
  const std::uint32_t writers_;

  std::atomic<std::uint64_t> applied_ = 0;

  // Guarded.
  std::map<std::uint32_t, Incarnation> newest_ ABSL_GUARDED_BY(table_.mutex());  // by slot
};

}  // namespace adamant::parameter_server
