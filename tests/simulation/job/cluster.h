#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simulation/engine/disk.h"
#include "tests/simulation/job/processes/controller_process.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// The machines: processes that start, end and are killed, and the disks that outlive them.
/// Threads: one.
class Cluster {
 public:
  explicit Cluster(World& world);  // must outlive this
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void StartController();

  /// What ends with the controller.
  enum class Extent : std::uint8_t {
    kAlone,  ///< its processes live on
    kGroup,
    kPower,  ///< all machines lose their power
  };

  /// Kills the controller; it starts again after `delay`.
  void CrashController(Extent extent, Clock::Duration delay);

  /// Kills one process.
  void Kill(MemberProcess& process, const std::string& how, Death death = Death::kKilled);
  void KillAll(Death death = Death::kKilled);

  /// Destroys what has ended; not while one of them is on the stack.
  void Bury() { graveyard_.clear(); }

  [[nodiscard]] std::vector<MemberProcess*> members() const;
  [[nodiscard]] ControllerProcess* controller() const { return controller_.get(); }

  /// Whether the job has ended, and how it stands or stood last.
  [[nodiscard]] bool finished() const { return controller_ != nullptr && controller_->finished(); }
  [[nodiscard]] const controller::JobState& last_state() const { return last_state_; }

  /// Compares what is on the parameter servers' disks with what must be there.
  void CheckDisks();

 private:
  struct Child {
    std::unique_ptr<MemberProcess> process;
    LifePtr parent;  // the controller that started it
  };

  void Start(const controller::StartProcess& start, const LifePtr& parent);
  Clock::Duration KillTime();
  void LoseSnapshots(std::uint32_t slot);
  void Remove(MemberProcess& process, const std::string& how, Death death = Death::kKilled);
  std::unique_ptr<MemberProcess> Make(const ProcessStart& start);

  World& world_;
  Disk controller_disk_;
  std::unique_ptr<ControllerProcess> controller_;
  std::vector<Child> children_;
  std::vector<std::unique_ptr<Endpoint>> graveyard_;
  std::uint64_t processes_ = 0;
  controller::JobState last_state_;
};

}  // namespace adamant::simulation
