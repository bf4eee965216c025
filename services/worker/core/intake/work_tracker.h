#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// Batches that wait, each for its push, and results that wait for the data servers' answer. A
/// batch is acknowledged only when the push that contains it is retired, to whoever dispatches its
/// part and to whom its lease is of; a result is kept, and repeated to the former, until it is
/// answered or its epoch is closed.
///
/// Use: after any call, send what Poll returns, then call Poll again at NextPoll.
/// Threads: one at a time.
class WorkTracker {
 public:
  using Message = std::variant<AcknowledgeMessage, HandBackMessage>;

  static constexpr std::chrono::seconds kRepeatAfter{2};

  // --- What the worker did

  /// These batches were trained; their changes travel in the push.
  void Trained(Sequence push, std::vector<LeaseResult> results);

  /// The push has ended. If it was refused, its batches are handed back, for they were not learned.
  void Retired(Sequence push, bool refused, Clock::TimePoint now);

  /// This batch was evaluated.
  void Evaluated(const LeaseResult& result, Clock::TimePoint now);

  /// These batches were not trained and will not be.
  void HandBack(const std::vector<Lease>& leases);

  // --- What happens to it

  void OnPlacement(const PlacementView& placement);
  void OnConnected(ServerSlot server);
  void OnDisconnected(ServerSlot server);

  /// The data server has stored these results.
  void OnAcknowledged(const std::vector<Lease>& leases);

  /// Training leases of epochs up to this one are void.
  void OnEpochClosed(DataEpoch epoch);

  // --- What follows

  /// The messages to send now, in order. One push makes one message per data server.
  std::vector<Message> Poll(Clock::TimePoint now);

  /// Returns when Poll may have more to send without another call; nullopt: not before one.
  [[nodiscard]] std::optional<Clock::TimePoint> NextPoll() const;

  /// Returns whether all training batches that were pushed have been answered.
  [[nodiscard]] bool Counted() const;

  /// Returns whether nothing waits for a push or an answer, and nothing is to be sent.
  [[nodiscard]] bool Idle() const;

 private:
  struct Sent {
    LeaseResult result;
    std::optional<ServerSlot> server;  // that it was last sent to
    Clock::TimePoint repeat_at{};
  };

  void Finish(const std::vector<LeaseResult>& results, Clock::TimePoint now);
  void PollHandBacks();
  [[nodiscard]] std::optional<ServerSlot> OwnerOf(const Lease& lease) const;
  [[nodiscard]] bool Void(const Lease& lease) const;

  PlacementView placement_;
  std::vector<bool> connected_;  // by server
  DataEpoch closed_epoch_ = 0;
  std::map<Sequence, std::vector<LeaseResult>> in_push_;
  std::map<Lease, Sent> unanswered_;
  std::vector<Lease> to_hand_back_;
  std::vector<Message> outbox_;
};

}  // namespace adamant::worker
