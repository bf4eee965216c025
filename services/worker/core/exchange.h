#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/worker/core/messages.h"
#include "services/worker/core/push_payload.h"
#include "services/worker/core/push_tracker.h"
#include "services/worker/core/replica.h"
#include "services/worker/core/staleness.h"
#include "services/worker/core/work_tracker.h"

namespace adamant::worker {

/// Totals since the start.
struct ExchangeStatistics {
  std::uint64_t pushes_acknowledged = 0;
  std::uint64_t pushes_refused = 0;
  std::uint64_t updates_lost = 0;
  std::uint64_t fetches = 0;
  StalenessHistogram staleness;
};

/// The worker between its training threads and the servers: takes what the threads hand over, in
/// one order, and decides what is sent, applied, acknowledged and recycled
/// (docs/design/updates.md).
///
/// Use: after any call, Advance; send TakeMessages in order; Advance again at NextAdvance, or when
/// Replica::wake_loop was called.
/// Threads: one at a time, beside the training threads.
class Exchange {
 public:
  using Message = std::variant<PushMessage, FetchMessage, AcknowledgeMessage, HandBackMessage>;

  /// Fills a range with the next values of a reply's payload.
  using ReadValues = std::function<absl::Status(std::span<float>)>;

  /// `replica` must outlive this.
  Exchange(Replica& replica, std::uint64_t max_message_bytes);

  // --- What happens

  void OnMap(const ClusterMap& map);
  void OnParameterServer(ServerSlot server, bool connected);
  void OnDataServer(ServerSlot server, bool connected);
  absl::Status OnPushReply(const PushReply& reply, Clock::TimePoint now);

  /// `read` is called for every shard found, in order.
  absl::Status OnFetchReply(const FetchReply& reply, const ReadValues& read, Clock::TimePoint now);
  void OnAcknowledged(const std::vector<Lease>& leases) { work_.OnAcknowledged(leases); }
  void OnEpochClosed(std::uint64_t epoch);

  /// Batches that name this snapshot are queued or will be.
  void WantSnapshot(std::uint64_t snapshot);

  // --- What the controller wants

  /// Everything of epochs up to this one is to be pushed or dropped; TakeFlushed says when it is.
  void Flush(std::uint64_t epoch);

  /// The threads are to stop, and what they did is to be handed over; Stopped says when it is.
  void Stop();

  // --- What follows

  /// Errors: InvalidArgument when training diverges; else as PushTracker::OnPushReply. The process
  /// must not go on.
  absl::Status Advance(Clock::TimePoint now);

  std::vector<Message> TakeMessages();
  [[nodiscard]] std::optional<Clock::TimePoint> NextAdvance() const;

  /// The bytes of a message just taken. The payload's owner must be gone before this is: Pinned.
  PushPayload PayloadOf(const PushMessage& message);

  /// Whether an owner of a payload is left.
  [[nodiscard]] bool Pinned() const;

  /// The epoch of a Flush that is done, once.
  std::optional<std::uint64_t> TakeFlushed();
  [[nodiscard]] bool Stopped() const;

  [[nodiscard]] ExchangeStatistics statistics() const;

 private:
  using ContentPtr = std::unique_ptr<PushContent>;

  void TakeEvents(Clock::TimePoint now);
  void OnEvent(const ThreadEvent& event, std::size_t thread, Clock::TimePoint now);
  absl::Status StartPushes(Clock::TimePoint now);
  ContentPtr GatherPush();
  absl::Status StartPush(ContentPtr content);
  absl::Status CountRefusal(const PushedShard* culprit, const Accumulator& accumulator);
  absl::Status Retire(Clock::TimePoint now);
  void FoldIntoFetch(Sequence sequence, const Accumulator& accumulator);
  void Recycle(const PushContent::Part& part);
  void RecycleUnpinned();
  void StartFetch(Clock::TimePoint now);
  void MarkIncluded();
  void StartRenewal();
  void FinishRenewal();
  void AdvanceEvaluation(Clock::TimePoint now);
  void PollServers(Clock::TimePoint now);

  Replica& replica_;
  PushTracker pushes_;
  WorkTracker work_;
  std::vector<Message> outbox_;
  FloatBuffer scratch_;

  std::map<Sequence, ContentPtr> in_flight_;
  std::deque<RetiredPush> retiring_;  // acknowledged, not yet taken out of the local sums
  std::vector<ContentPtr> leaving_;   // done with, but pinned
  std::size_t next_thread_ = 0;
  bool ring_ = false;

  FetchId fetch_ = 0;  // under way or waiting to be applied; 0: none
  bool fetch_complete_ = false;
  bool renewing_ = true;  // threads are being stopped, or weights fetched for them
  std::size_t reset_answers_ = 0;
  std::uint32_t refusals_in_a_row_ = 0;

  std::uint64_t newest_snapshot_ = 0;  // that a batch named
  std::uint64_t wanted_snapshot_ = 0;  // not yet asked for; 0: none
  std::uint64_t snapshot_ = 0;         // loaded, or being fetched
  FetchId snapshot_fetch_ = 0;

  std::optional<std::uint64_t> flush_epoch_;
  std::size_t flush_answers_ = 0;
  std::size_t stop_answers_ = 0;
  ExchangeStatistics statistics_;
};

}  // namespace adamant::worker
