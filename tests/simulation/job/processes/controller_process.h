#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "tests/simulation/engine/disk.h"
#include "tests/simulation/engine/local_clock.h"
#include "tests/simulation/job/processes/exporter.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// The controller around its real core. Mirrors operator/local.
/// Threads: one.
class ControllerProcess final : public Endpoint {
 public:
  /// The machine that it starts processes on. Both are done a moment later.
  struct Body {
    std::function<void(const controller::StartProcess&)> start;
    std::function<void(const controller::KillProcess&)> kill;
  };

  /// `disk` must outlive this. Goes on from what the disk holds.
  ControllerProcess(World& world, std::uint64_t number, Disk& disk, Body body);

  void Handle(const controller::Event& event);

  void OnMessage(StreamId stream, StreamKind kind, Message& message) override;
  void OnEnded(StreamId stream, StreamKind kind) override;

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] const controller::JobState& state() const { return core_->state(); }

 private:
  void Restore();
  void Perform(std::vector<controller::Action> actions);
  bool Persist(const controller::Persist& persist);
  void SendTo(const controller::Send& send);
  void Export(std::uint64_t snapshot);
  void TellWentBack();
  void PlanTick();

  World& world_;
  const LocalClock clock_;
  Disk& disk_;
  const Body body_;
  std::unique_ptr<controller::JobController> core_;
  std::vector<std::unique_ptr<Exporter>> exporters_;
  std::optional<Clock::TimePoint> tick_at_;  // by its clock
  bool finished_ = false;
};

}  // namespace adamant::simulation
