#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "operator/core/state/messages.h"
#include "services/common/base/ids.h"
#include "tests/simulation/replication/processes/world.h"

namespace adamant::replication_simulation {

class Cluster;

/// A process that has streams to the controller.
class ControlledProcess {
 public:
  explicit ControlledProcess(const std::string& name) : life(std::make_shared<Life>()) {
    life->name = name;
  }
  virtual ~ControlledProcess() = default;
  ControlledProcess(const ControlledProcess&) = delete;
  ControlledProcess& operator=(const ControlledProcess&) = delete;

  virtual void OnControllerMessage(std::uint64_t connection,
                                   const controller::ControllerMessage& message) = 0;
  virtual void OnBroken(std::uint64_t connection) = 0;

  /// Where it runs.
  [[nodiscard]] virtual Place place() const = 0;

  const LifePtr life;
};

/// The only worker of the job, as far as the controller sees: all writers and clerks are its
/// threads, which it lets hold for checkpoints.
/// Threads: one.
class Foreman final : public ControlledProcess {
 public:
  Foreman(World& world, Cluster& cluster, std::uint64_t generation, const std::string& uid);

  void OnControllerMessage(std::uint64_t connection,
                           const controller::ControllerMessage& message) override;
  void OnBroken(std::uint64_t connection) override;
  [[nodiscard]] Place place() const override;

  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  void Connect();
  void Tell(controller::MemberMessage message);
  void Heartbeat();
  void AwaitRest(std::uint64_t checkpoint);

  World& world_;
  Cluster& cluster_;
  const std::uint64_t generation_;
  const std::string uid_;
  std::uint64_t connection_ = 0;
  Incarnation incarnation_ = 0;
  std::optional<std::uint64_t> pausing_;  // for this checkpoint
};

}  // namespace adamant::replication_simulation
