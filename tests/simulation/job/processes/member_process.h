#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "operator/core/state/messages.h"
#include "services/common/base/backoff.h"
#include "services/common/base/ids.h"
#include "tests/simulation/engine/local_clock.h"
#include "tests/simulation/job/network/network.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// One start of a process of the job.
struct ProcessStart {
  controller::SlotId id;
  std::uint64_t generation = 0;
  std::uint64_t number = 0;  ///< of all processes of the simulation; names this one
};

/// How a process ends that does not end by itself.
enum class Death : std::uint8_t {
  kKilled,     ///< its machine goes on
  kPowerLost,  ///< and what was not synced to its disk is gone
};

/// What the three services have in common: the control stream, heartbeats, and the way a process
/// ends. Mirrors services/common/service.
/// Threads: one.
class MemberProcess : public Endpoint {
 public:
  /// `exited` is called, once, when the process ends by itself; it may be destroyed then, later.
  MemberProcess(World& world, const ProcessStart& start, std::function<void(std::string)> exited);

  void OnMessage(StreamId stream, StreamKind kind, Message& message) final;
  void OnEnded(StreamId stream, StreamKind kind) final;

  /// It notices that training diverges.
  void Diverge() {
    Tell(controller::Failure{
        .message = "training diverged: simulated", .fatal = true, .diverged = true});
  }

  /// The process is killed, or it has ended by itself: its life has ended.
  virtual void OnKilled(Death /*death*/) {}

  [[nodiscard]] const ProcessStart& start() const { return start_; }
  [[nodiscard]] Incarnation incarnation() const {
    return welcome_.has_value() ? welcome_->incarnation : Incarnation(0);
  }

  // --- What it and its parts use

  void Tell(controller::MemberMessage message);

  /// The process cannot go on.
  void Fail(const absl::Status& reason);

  /// Plans something for this process.
  void After(Clock::Duration delay, std::function<void()> action) {
    world_.scheduler.After(clock_.ToWorld(delay), life, std::move(action));
  }
  void Send(StreamId stream, Message message) {
    world_.network.Send(stream, *this, std::move(message));
  }
  [[nodiscard]] std::uint64_t attempt() const { return welcome_->attempt; }
  [[nodiscard]] const LocalClock& clock() const { return clock_; }

 protected:
  // --- What a service does

  /// The controller has admitted this process.
  virtual absl::Status Start(const controller::Welcome& welcome) = 0;
  virtual void OnControl(const controller::ControllerMessage& message) = 0;

  /// The control stream has ended.
  virtual void OnAway() {}

  /// The controller, or another one, has welcomed this process again.
  virtual void OnAttending() {}
  virtual controller::Heartbeat MakeHeartbeat() = 0;

  /// Hands over what must be handed over, then calls Leave.
  virtual void Stop() = 0;

  virtual void OnServiceMessage(StreamId stream, StreamKind kind, Message& message) = 0;
  virtual void OnServiceEnded(StreamId stream, StreamKind kind) = 0;

  // --- What it alone uses

  /// Ends the process once what was told is out.
  void Leave();

  [[nodiscard]] bool attending() const { return attending_; }
  [[nodiscard]] Clock::TimePoint Now() const { return world_.scheduler.Now(); }
  [[nodiscard]] const std::string& address() const { return life->name; }

  World& world_;
  const LocalClock clock_;  ///< of its machine

 private:
  static constexpr std::size_t kMostWaiting = 1024;

  void Attend();
  void OnControlMessage(const controller::ControllerMessage& message);
  void OnWelcome(const controller::Welcome& welcome);
  void End(absl::Status status);
  void Beat();

  const ProcessStart start_;
  const std::function<void(std::string)> exited_;
  Backoff backoff_;
  StreamId control_ = 0;
  bool attending_ = false;  // beyond Welcome
  std::optional<controller::Welcome> welcome_;
  std::deque<controller::MemberMessage> waiting_;
  std::optional<absl::Status> end_;
  bool over_ = false;  // the controller wants nothing more of this process
  bool started_ = false;
};

}  // namespace adamant::simulation
