#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/sync/routing/routes.h"

namespace adamant::worker {

/// Progress that a reply brought to a fetch.
struct FetchProgress {
  FetchId fetch = 0;               ///< 0: nobody waits for any of it
  std::vector<std::size_t> fresh;  ///< positions in the reply whose values are to be copied
  bool complete = false;           ///< all shards have come
};

/// The fetches under way: what has come, what is to be asked for again. A value of a lower
/// configuration than one that is known of is refused; a snapshot that a server does not have yet
/// is asked for until somebody drops the fetch.
///
/// Use: after any call, send what Poll returns, then call Poll again at NextPoll.
/// Threads: one at a time.
class FetchTracker {
 public:
  /// Both must outlive this. `max_message_bytes` bounds the values of a reply, unless one shard has
  /// more.
  FetchTracker(std::uint64_t max_message_bytes, const ShardLayout& layout, Routes& routes);

  /// Starts a fetch of all shards. `snapshot` 0: the values of now.
  FetchId Fetch(std::uint64_t snapshot);

  /// Forgets a fetch; replies to it are ignored.
  void Drop(FetchId fetch);

  /// After Routes::OnPlacement: what was asked of servers that are no longer primaries is asked
  /// anew.
  void OnPlacement();
  void OnDisconnected(ServerSlot server);

  /// Errors: Internal when the server broke the protocol.
  absl::StatusOr<FetchProgress> OnReply(const FetchReply& reply, Clock::TimePoint now);

  /// The messages to send now.
  std::vector<FetchMessage> Poll(Clock::TimePoint now);

  /// Returns when Poll may have more to send without another call; nullopt: not before one.
  [[nodiscard]] std::optional<Clock::TimePoint> NextPoll() const { return next_poll_; }

  /// Returns whether the shard's value has come with this fetch.
  [[nodiscard]] bool Received(FetchId fetch, ShardId shard) const;

  /// Returns whether it has come, and includes the push.
  [[nodiscard]] bool Includes(FetchId fetch, ShardId shard, Sequence sequence) const;

  /// By shard: the versions that have come with this fetch.
  [[nodiscard]] std::vector<std::uint64_t> Versions(FetchId fetch) const;

 private:
  /// One shard of a fetch.
  struct Part {
    std::uint64_t request = 0;  // that it was last asked for with; 0: to be asked for
    ServerSlot server = 0;      // that was asked
    bool done = false;
    std::uint64_t version = 0;
    Sequence included = 0;
    std::uint32_t misses = 0;  // of the snapshot, in a row
    Clock::TimePoint retry_at{};
  };
  struct Transfer {
    FetchId id = 0;
    std::uint64_t snapshot = 0;
    std::size_t left = 0;    // parts not done
    std::size_t unsent = 0;  // parts to be asked for
    std::vector<Part> parts;
  };

  static void MarkUnsent(Transfer& fetch, Part& part);
  void OnFound(const FetchedShard& fetched, Transfer& fetch, Part& part);
  void OnRefused(const FetchedShard& fetched, Part& part, Clock::TimePoint now);
  void PollFetch(Transfer& fetch, Clock::TimePoint now, std::vector<FetchMessage>& messages);
  [[nodiscard]] const Transfer* Find(FetchId fetch) const;

  const std::uint64_t max_message_bytes_;
  const ShardLayout& layout_;
  Routes& routes_;
  std::deque<Transfer> fetches_;
  std::optional<Clock::TimePoint> next_poll_;
  FetchId last_fetch_ = 0;
};

}  // namespace adamant::worker
