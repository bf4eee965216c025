#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/sync/pushes/flush_schedule.h"
#include "services/worker/core/sync/pushes/push_cursor.h"
#include "services/worker/core/sync/routing/routes.h"

namespace adamant::worker {

struct PushTrackerOptions {
  std::vector<PushedShard> pushed;      ///< ascending by shard
  std::size_t max_pushes = 2;           ///< in flight
  std::uint64_t max_message_bytes = 0;  ///< payload of a push, unless one shard has more
  bool retain = false;                  ///< what is not known to be on disk may be wanted again
};

/// A push that has ended: acknowledged in all shards, or refused by a server.
struct RetiredPush {
  Sequence sequence = 0;
  bool refused = false;  ///< a server found it not finite
};

/// Record of what the worker and the parameter servers have told each other about pushes:
/// sequences, what is in flight, acknowledged, on disk, to be sent again. Payloads are the
/// caller's; the scheme is docs/design/0007-updates.md.
///
/// Each shard rewinds to its oldest update without an acknowledgement whenever one is refused or
/// its way is lost, and sends from there in order; what comes twice its server knows.
///
/// Use: after any call, send what Poll returns, then call Poll again at NextPoll.
/// Threads: one at a time.
class PushTracker {
 public:
  using Message = std::variant<PushMessage, FlushMessage>;

  /// `layout` and `routes` must outlive this.
  PushTracker(PushTrackerOptions options, const ShardLayout& layout, Routes& routes);

  // --- What the worker wants

  /// Returns whether another push may start.
  [[nodiscard]] bool CanPush() const { return last_ - retired_ < options_.max_pushes; }

  /// Returns whether everything that was pushed is acknowledged, also what had to be sent again.
  [[nodiscard]] bool Idle() const;

  /// Starts a push; CanPush() must hold.
  Sequence Push(const PushTerms& terms);

  /// By shard: the versions that later pushes were computed from.
  void SetFetchedVersions(std::vector<std::uint64_t> versions);

  /// Sets whether servers are asked, now and again, to write to disk what this worker retains.
  void AskForFlush(bool wanted) { flush_.Want(wanted); }

  /// The push that a request carries; nullopt once it is answered, or nobody waits for it.
  [[nodiscard]] std::optional<Sequence> SequenceOf(std::uint64_t request) const;

  // --- What happens to it

  /// After Routes::OnPlacement: what is in flight to servers that are no longer primaries is sent
  /// to the new ones; buckets that came back from disk are asked what they have.
  void OnPlacement();
  void OnDisconnected(ServerSlot server);

  /// Errors: Aborted when another process has this worker's slot; Internal when the server broke
  /// the protocol. Neither is cured by going on.
  absl::Status OnReply(const PushReply& reply, Clock::TimePoint now);
  absl::Status OnReply(const FlushReply& reply);

  /// A value of now came in answer to a fetch: it may lack what was acknowledged.
  void OnValue(std::uint64_t request, const FetchedShard& fetched);

  // --- What follows

  /// The messages to send now, in order.
  std::vector<Message> Poll(Clock::TimePoint now);

  /// Returns when Poll may have more to send without another call; nullopt: not before one.
  [[nodiscard]] std::optional<Clock::TimePoint> NextPoll() const { return next_poll_; }

  /// The pushes that ended since the last call, in the order of their sequences.
  std::vector<RetiredPush> TakeRetired();

  /// No message will name a push up to this one any more; rises. Only pushes that TakeRetired has
  /// returned are released.
  Sequence Release();

  [[nodiscard]] Sequence last_sequence() const { return last_; }

  /// Updates (of single shards) that servers acknowledged and then lost, and that are gone.
  [[nodiscard]] std::uint64_t lost_updates() const { return lost_updates_; }

  /// Likewise, but sent again and applied again.
  [[nodiscard]] std::uint64_t resent_updates() const { return resent_updates_; }

 private:
  struct Sent {
    ServerSlot server = 0;
    Sequence sequence = 0;
  };
  /// An update that may be sent.
  struct Ready {
    Sequence sequence = 0;
    std::size_t position = 0;
    bool after_loss = false;
  };

  [[nodiscard]] Sequence first_held() const { return released_ + 1; }
  [[nodiscard]] std::uint64_t next_request() const { return routes_.last_request() + 1; }
  [[nodiscard]] PushCursor* Find(ShardId shard);
  absl::Status OnAck(PushCursor& cursor,
                     Sequence sequence,
                     const ShardAck& ack,
                     Clock::TimePoint now);
  absl::Status OnUnexpected(PushCursor& cursor, Sequence sequence, const ShardAck& ack);
  void Rewind(PushCursor& cursor, Sequence expected);
  std::vector<Ready> TakeReady(Clock::TimePoint now);
  void PollPushes(Clock::TimePoint now, std::vector<Message>& messages);
  void PollFlush(Clock::TimePoint now, std::vector<Message>& messages);

  const PushTrackerOptions options_;
  const ShardLayout& layout_;
  Routes& routes_;
  std::vector<std::int64_t> position_of_;  // by shard: its position in options_.pushed, or -1

  std::vector<PushCursor> cursors_;             // by position
  std::map<std::uint64_t, Sent> unanswered_;    // by request
  std::deque<PushTerms> terms_;                 // of the pushes from first_held() on
  std::vector<std::uint64_t> fetched_version_;  // by shard
  std::set<Sequence> refused_;                  // not retired yet
  Sequence last_ = 0;
  Sequence retired_ = 0;
  Sequence released_ = 0;
  std::uint64_t lost_updates_ = 0;
  std::uint64_t resent_updates_ = 0;

  FlushSchedule flush_;
  std::optional<Clock::TimePoint> next_poll_;
};

}  // namespace adamant::worker
