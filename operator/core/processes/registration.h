#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Registers processes that join in their slots: refuses those that have no place, gives each new
/// one the slot's next incarnation, and binds the slot to its connection.
/// Threads: one thread at a time.
class Registration {
 public:
  using TimePoint = Clock::TimePoint;

  enum class Joined : std::uint8_t {
    kRefused,   ///< and told so
    kNew,       ///< a process new to this controller, or back at it
    kReplaced,  ///< like kNew, but another process held the slot until now: handle its loss first
  };

  /// The arguments must outlive this.
  Registration(const JobSettings& settings, Outbox& outbox, ProcessTable& processes)
      : settings_(settings), outbox_(outbox), processes_(processes) {}

  /// Judges a Join and binds the slot to the connection. Does not send Welcome.
  Joined OnJoin(ConnectionId connection, const Join& join, TimePoint now);

  /// These processes cannot have joined yet: their time for it begins now.
  void OnWaiting(std::span<const StartProcess> processes, TimePoint now);

 private:
  [[nodiscard]] std::string Objection(const Join& join) const;

  const JobSettings& settings_;
  Outbox& outbox_;
  ProcessTable& processes_;
};

}  // namespace adamant::controller
