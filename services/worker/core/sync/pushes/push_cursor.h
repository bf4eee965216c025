#pragma once

#include <cstdint>
#include <optional>

#include "services/common/base/ids.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/sync/pushes/sequence_set.h"

namespace adamant::worker {

/// Position of one shard in the sequence of all pushes: what its primary has, and what is on its
/// way there. Goes back to the oldest update without an acknowledgement whenever the way is lost.
/// `next_request`: the number of the next message; answers to earlier ones are void from then on.
/// Threads: one at a time.
class PushCursor {
 public:
  /// An update that may be sent.
  struct Update {
    Sequence sequence = 0;
    bool after_loss = false;  ///< all that the server lacks before it is gone
  };

  // --- What is known

  /// The server has all up to this one but for what is gone.
  [[nodiscard]] Sequence acknowledged() const { return acknowledged_; }

  /// Returns the push up to which all behind acknowledged() are on their way.
  [[nodiscard]] Sequence sent() const { return sent_; }

  /// The last one on the disks of all replicas, as far as the server has said so.
  [[nodiscard]] Sequence persisted() const { return persisted_; }

  /// Returns the server that updates are sent to.
  [[nodiscard]] ServerSlot server() const { return server_; }

  /// Returns whether the answer to this request says anything about now.
  [[nodiscard]] bool Heeds(std::uint64_t request) const { return request >= since_; }

  /// Returns whether the push has ever been acknowledged, by whichever server.
  [[nodiscard]] bool WasAcknowledged(Sequence sequence) const { return sequence <= most_; }

  /// Returns whether a server that answers under this configuration of the bucket with a value up
  /// to `included` was rolled back. Under the configuration of the acknowledgement the value may be
  /// the older of the two.
  [[nodiscard]] bool IsRolledBack(Sequence included,
                                  ConfigurationVersion configuration_version) const {
    return included < acknowledged_ && configuration_version > configuration_version_;
  }

  // --- What happens

  /// The newest placement of the shard's bucket; pushes from `first_held` on can be sent again.
  void OnPlacement(const BucketPlacement& placement,
                   Sequence first_held,
                   std::uint64_t next_request);
  void OnDisconnected(ServerSlot server, std::uint64_t next_request);

  /// The server has the update, under this configuration of the bucket.
  void OnServed(Sequence sequence, const ShardAck& ack);

  /// A server will not take this update, and neither will any other.
  void OnRefused(Sequence sequence);

  /// Notes what the server has said of its disk.
  void OnPersisted(Sequence sequence);

  /// Marks what is in flight to be sent anew.
  void Reset(std::uint64_t next_request);

  /// The server wants `expected` next, which was sent: what is acknowledged from there on is sent
  /// again. What is before `first_held` is gone; returns how much of it was not yet. Reset follows.
  [[nodiscard]] std::uint64_t Rewind(Sequence expected, Sequence first_held);

  /// The server has said, after Reset, that it wants `expected` next: only now is it certain that
  /// skipping what is gone skips nothing else.
  void SkipGone(Sequence expected);

  // --- What follows

  /// The next update that may go to the server, none behind `last`; counts it as sent.
  std::optional<Update> Send(ServerSlot server, Sequence last);

 private:
  void Acknowledge(Sequence sequence);
  void OnRestored(Sequence first_held);

  Sequence acknowledged_ = 0;
  Sequence sent_ = 0;
  ServerSlot server_ = 0;
  std::uint64_t since_ = 0;
  bool skip_ = false;  // the server lacks nothing before the next one but `gone_`
  Sequence persisted_ = 0;
  Sequence most_ = 0;                               // that were ever acknowledged
  ConfigurationVersion configuration_version_ = 0;  // of the bucket at the last acknowledgement
  std::uint64_t generation_ = 0;                    // of the bucket in the newest view
  SequenceSet gone_;  // lost or refused: in no history of the shard, now or later
};

}  // namespace adamant::worker
