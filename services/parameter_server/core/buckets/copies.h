#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/shards/live_shard.h"
#include "services/parameter_server/core/shards/shard_content.h"

namespace adamant::parameter_server {

/// In a CopyAck: nothing new, but the learner is still at it.
inline constexpr std::uint32_t kNoPart = 0xffffffff;

/// In a CopyAck: the learner's way to the primary is open anew, so that acknowledgements may be
/// lost: the copy begins anew.
inline constexpr std::uint32_t kCopyAgain = 0xfffffffe;

/// The primary's side of copying a bucket to a learner: which part is sent when. At most kWindow
/// parts are under way.
/// Threads: one at a time.
class CopySender {
 public:
  static constexpr std::uint32_t kWindow = 4;

  /// Parts 0 to shards - 1 are the shards of the bucket, the rest its records, by key.
  CopySender(const ServerId& learner,
             std::uint64_t copy,
             std::uint32_t shards,
             std::vector<std::string> keys);

  [[nodiscard]] const ServerId& learner() const { return learner_; }
  [[nodiscard]] std::uint64_t copy() const { return copy_; }
  [[nodiscard]] std::uint32_t parts() const { return static_cast<std::uint32_t>(acked_.size()); }

  /// The next part that may be sent, once; false when the window is full or all are sent.
  bool TakeNext(std::uint32_t& index);

  /// Returns whether this was the last one missing. A copy without parts is acknowledged as if it
  /// had one, so that the learner is known to have begun.
  bool Acknowledged(std::uint32_t index);

  /// Of a part that is a record.
  [[nodiscard]] const std::string& KeyOf(std::uint32_t index) const {
    return keys_[index - shards_];
  }
  [[nodiscard]] bool IsShard(std::uint32_t index) const { return index < shards_; }

 private:
  const ServerId learner_;
  const std::uint64_t copy_;
  const std::uint32_t shards_;
  const std::vector<std::string> keys_;
  std::vector<bool> acked_;  // by part
  std::uint32_t sent_ = 0;
  std::uint32_t done_ = 0;
};

/// The learner's side: what has come.
/// Threads: one at a time.
class CopyReceiver {
 public:
  /// More records than this in one bucket are not believed.
  static constexpr std::uint32_t kMaxRecords = 65536;

  CopyReceiver(std::uint64_t copy,
               std::uint64_t generation,
               std::uint32_t parts,
               std::size_t shards);

  [[nodiscard]] std::uint64_t copy() const { return copy_; }
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  /// Part `index` is there: a shard at its position, with its table, or a record. Returns whether
  /// it is new.
  bool Add(std::uint32_t index, std::size_t position, LiveShardPtr shard, SequenceTable sequences);
  bool Add(std::uint32_t index, const CopiedRecord& record);

  /// All parts and all shards are there.
  [[nodiscard]] bool Complete() const;
  [[nodiscard]] std::uint32_t last_index() const { return last_index_; }

  std::vector<LiveShardPtr> shards;  ///< by position
  std::vector<SequenceTable> sequences;
  RecordMap records;

 private:
  bool Mark(std::uint32_t index);

  const std::uint64_t copy_;
  const std::uint64_t generation_;
  std::vector<bool> have_;  // by part
  std::uint32_t missing_;
  std::uint32_t last_index_ = 0;  // of the part that came last; 0 if there are none
};

}  // namespace adamant::parameter_server
