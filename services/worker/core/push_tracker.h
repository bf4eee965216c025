#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/messages.h"

namespace adamant::worker {

/// A shard that every push carries.
struct PushedShard {
  ShardId shard = 0;
  std::uint64_t bytes = 0;          ///< of its values in a push; 0 with Activations
  std::uint64_t operand_bytes = 0;  ///< with Activations: most bytes of the layer's rows
};

struct PushTrackerOptions {
  std::vector<PushedShard> pushed;      ///< ascending by shard
  std::size_t max_pushes = 2;           ///< in flight
  std::uint64_t max_message_bytes = 0;  ///< payload of a push or fetch reply, unless one shard has
                                        ///< more
};

/// A push that has ended: acknowledged in all shards, or refused by a server.
struct RetiredPush {
  Sequence sequence = 0;
  bool refused = false;  ///< a server found it not finite
};

/// What a reply to a fetch brought.
struct FetchProgress {
  FetchId fetch = 0;               ///< 0: nobody waits for it any more
  std::vector<std::size_t> fresh;  ///< positions in the reply whose values are to be copied
  bool complete = false;           ///< all shards have come
  bool missing = false;            ///< a server does not have the snapshot; the fetch is dropped
};

/// What the worker and the parameter servers have told each other: sequences, pushes in flight,
/// fetches, what to send again. Arithmetic and payloads are the caller's; the scheme is
/// docs/design/updates.md.
///
/// Use: after any call, send what Poll returns, then call Poll again at NextPoll.
/// Threads: one at a time.
class PushTracker {
 public:
  using Message = std::variant<PushMessage, FetchMessage>;

  PushTracker(PushTrackerOptions options, const ShardLayout& layout);  // layout must outlive this

  // --- What the worker wants

  /// Whether another push may start.
  [[nodiscard]] bool CanPush() const { return pushes_.size() < options_.max_pushes; }

  /// Whether no push is in flight.
  [[nodiscard]] bool Idle() const { return pushes_.empty(); }

  /// Starts a push; CanPush() must hold.
  Sequence Push(std::uint64_t job_examples);

  /// Starts a fetch of all shards. `snapshot` 0: the values of now.
  FetchId Fetch(std::uint64_t snapshot);

  /// The values of a complete fetch have been applied: later pushes name their versions.
  void Applied(FetchId fetch);

  /// Forgets a fetch; replies to it are ignored.
  void Drop(FetchId fetch);

  // --- What happens to it

  void OnMap(const ClusterMap& map);
  void OnConnected(ServerSlot server);
  void OnDisconnected(ServerSlot server);

  /// Errors: Aborted when another process has this worker's slot; Internal when the server broke
  /// the protocol. Neither is cured by going on.
  absl::Status OnPushReply(const PushReply& reply, Clock::TimePoint now);

  /// Errors: Internal when the server broke the protocol.
  absl::StatusOr<FetchProgress> OnFetchReply(const FetchReply& reply, Clock::TimePoint now);

  // --- What follows

  /// The messages to send now, in order.
  std::vector<Message> Poll(Clock::TimePoint now);

  /// When Poll may have more to send without another call; nullopt: not before one.
  [[nodiscard]] std::optional<Clock::TimePoint> NextPoll() const { return next_poll_; }

  /// The pushes that ended since the last call, in the order of their sequences.
  std::vector<RetiredPush> TakeRetired();

  /// Whether the shard's value has come with this fetch and includes the push.
  [[nodiscard]] bool Includes(FetchId fetch, ShardId shard, Sequence sequence) const;

  /// Whether the shard's value has come with this fetch.
  [[nodiscard]] bool Received(FetchId fetch, ShardId shard) const;

  /// Updates (of single shards) that servers acknowledged and then lost.
  [[nodiscard]] std::uint64_t lost_updates() const { return lost_updates_; }

 private:
  /// One shard of a push or of a fetch.
  struct Part {
    std::uint64_t request = 0;      // that it was last sent with; 0: to be sent
    ServerSlot server = 0;          // that it was sent to
    std::uint64_t map_version = 0;  // that it was sent under
    bool done = false;
    bool doubted = false;       // push: the server may have lost what came before
    bool after_loss = false;    // push: it has
    bool refused = false;       // push: as not finite
    std::uint64_t version = 0;  // fetch: of the value
    Sequence included = 0;      // fetch: the last one that the value includes
  };
  struct Transfer {
    std::uint64_t id = 0;  // Sequence or FetchId
    std::uint64_t job_examples = 0;
    std::uint64_t snapshot = 0;
    std::size_t left = 0;     // parts not done
    std::size_t unsent = 0;   // parts to be sent
    std::vector<Part> parts;  // push: by position in options_.pushed; fetch: by shard
  };
  /// When a shard that a server refused for now may be asked for again.
  struct Gate {
    std::uint64_t after_map = 0;  // under a newer map than this, or
    Clock::TimePoint at{};        // from this time on
    std::uint32_t refusals = 0;   // in a row
  };

  // Where a part may be sent now; nullopt: nowhere yet.
  std::optional<ServerSlot> Route(ShardId shard, Clock::TimePoint now);
  void CloseGate(ShardId shard, bool not_primary, const Part& part, Clock::TimePoint now);

  static Transfer MakeTransfer(std::uint64_t id, std::size_t parts);
  void MarkSent(Transfer& transfer, Part& part, std::uint64_t request, ServerSlot server);
  static void MarkUnsent(Transfer& transfer, Part& part);
  static void MarkDone(Transfer& transfer, Part& part);
  [[nodiscard]] const Transfer* FindFetch(FetchId fetch) const;

  absl::Status OnAck(std::uint64_t request, const ShardAck& ack, Clock::TimePoint now);
  absl::Status Rewind(std::size_t push, std::size_t position, Sequence expected);
  [[nodiscard]] bool Overtakes(std::size_t push, std::size_t position, ServerSlot server) const;
  void PollPush(std::size_t push, Clock::TimePoint now, std::vector<Message>& messages);
  void PollFetch(Transfer& fetch, Clock::TimePoint now, std::vector<Message>& messages);

  const PushTrackerOptions options_;
  const ShardLayout& layout_;
  std::vector<std::int64_t> position_of_;  // by shard: its position in options_.pushed, or -1

  ClusterMap map_;
  std::vector<Sequence> lost_before_;  // by position: losses below this one have been counted
  std::vector<bool> connected_;        // by server
  std::vector<std::uint64_t> fetched_version_;  // by shard: of the last value applied
  std::vector<Gate> gates_;                     // by shard
  std::deque<Transfer> pushes_;                 // in flight, with consecutive sequences
  std::deque<Transfer> fetches_;
  std::vector<RetiredPush> retired_;
  std::optional<Clock::TimePoint> next_poll_;
  Sequence last_sequence_ = 0;
  FetchId last_fetch_ = 0;
  std::uint64_t last_request_ = 0;
  std::uint64_t lost_updates_ = 0;
};

}  // namespace adamant::worker
