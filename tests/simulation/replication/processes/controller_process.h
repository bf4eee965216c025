#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "tests/simulation/replication/processes/world.h"

namespace adamant::replication_simulation {

/// What controllers leave behind; only the one of the highest term may write.
struct ControllerStore {
  std::uint64_t term = 0;
  std::string state;
};

/// One process of the controller: the real core, of a job that has parameter servers and,
/// where only checkpoints are stored, a worker (Foreman).
/// Threads: one.
class ControllerProcess {
 public:
  struct Body {
    std::function<void(controller::SlotId id, std::uint64_t generation)> start;
    std::function<void(controller::SlotId id, std::uint64_t generation)> kill;
    std::function<void(std::uint64_t connection, const controller::ControllerMessage&)> send;
    std::function<void(std::uint64_t connection)> close;
  };

  ControllerProcess(World& world, ControllerStore& store, std::uint64_t number, Body body);

  void Begin(const controller::JobController::Survivors& survivors);
  void OnMessage(std::uint64_t connection, controller::MemberMessage message);
  void OnBroken(std::uint64_t connection);
  void OnExited(controller::SlotId id, std::uint64_t generation, bool proved);

  [[nodiscard]] const std::vector<controller::Configuration>& records() const {
    return core_->state().buckets;
  }
  /// Those whom records name and who are known to have ended; sorted.
  [[nodiscard]] const std::vector<controller::ServerId>& dead() const {
    return core_->state().dead;
  }
  [[nodiscard]] std::uint64_t checkpoint() const { return core_->state().checkpoint.snapshot; }
  [[nodiscard]] std::uint64_t term() const { return core_->state().term; }

  const LifePtr life;

 private:
  void Handle(const controller::Event& event);
  void Perform(std::vector<controller::Action> actions);
  bool Persist(const controller::Persist& persist);
  void Distort(controller::MemberMessage& message) const;
  void OnFailed();
  void PlanTick();

  World& world_;
  ControllerStore& store_;
  Body body_;
  std::unique_ptr<controller::JobController> core_;
  std::optional<Clock::TimePoint> tick_at_;
};

}  // namespace adamant::replication_simulation
