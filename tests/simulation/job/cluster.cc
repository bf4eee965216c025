#include "tests/simulation/job/cluster.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/job/processes/data_server_process.h"
#include "tests/simulation/job/processes/parameter_server_process.h"
#include "tests/simulation/job/processes/worker_process.h"

namespace adamant::simulation {
namespace {

constexpr double kKilledLate = 0.3;

}  // namespace

Cluster::Cluster(World& world) : world_(world) {
  world.job.WhoLives([this](controller::ServerId server) {
    return std::ranges::any_of(children_, [&](const Child& child) {
      const ProcessStart& start = child.process->start();
      return start.id.role == controller::Role::kParameterServer && start.id.slot == server.slot &&
             child.process->incarnation() == server.incarnation;
    });
  });
  for (Disk& disk : world.disks) {
    disk.SetLying(world.Has(Mutation::kLyingDisk));
  }
}

Cluster::~Cluster() {
  KillAll();
  if (controller_ != nullptr) {
    world_.network.Remove(*controller_);
  }
}

void Cluster::StartController() {
  // Its first actions may start processes at once.
  auto life = std::make_shared<LifePtr>();
  controller_ = std::make_unique<ControllerProcess>(
      world_,
      ++processes_,
      controller_disk_,
      ControllerProcess::Body{.start =
                                  [this, life](const controller::StartProcess& start) {
                                    world_.scheduler.After(
                                        world_.scheduler.Random(milliseconds(1), milliseconds(80)),
                                        nullptr,
                                        [this, life, start] {
                                          if (!(*life)->ended) {
                                            Start(start, *life);
                                          }
                                        });
                                  },
                              .kill =
                                  [this, life](const controller::KillProcess& kill) {
                                    world_.scheduler.After(KillTime(), nullptr, [this, life, kill] {
                                      for (const Child& child : children_) {
                                        const ProcessStart& start = child.process->start();
                                        if (child.parent == *life && start.id == kill.id &&
                                            start.generation == kill.generation) {
                                          return Kill(*child.process, "was killed by signal 9");
                                        }
                                      }
                                    });
                                  }});
  *life = controller_->life;
}

// Its machine may be cut off from who is to kill it.
Clock::Duration Cluster::KillTime() {
  return world_.scheduler.Chance(kKilledLate) ? world_.scheduler.Random(seconds(1), seconds(30))
                                              : milliseconds(1);
}

void Cluster::CrashController(Extent extent, Clock::Duration delay) {
  if (controller_ == nullptr) {
    return;
  }
  const bool power = extent == Extent::kPower;
  world_.scheduler.Record("fault",
                          power                      ? "cuts the power of all"
                          : extent == Extent::kGroup ? "kills the whole group"
                                                     : "kills the controller");
  last_state_ = controller_->state();
  controller_->life->ended = true;
  world_.job.Ended();
  world_.network.Remove(*controller_);
  power ? controller_disk_.store().LosePower() : controller_disk_.store().Crash();
  graveyard_.push_back(std::move(controller_));
  if (extent != Extent::kAlone) {
    KillAll(power ? Death::kPowerLost : Death::kKilled);
  }
  for (std::uint32_t slot = 0; power && slot < world_.disks.size(); ++slot) {
    world_.disks[slot].store().LosePower();  // also of those that no process has open
    world_.updates.PowerLost(slot);
  }
  world_.scheduler.After(delay, nullptr, [this] { StartController(); });
}

std::unique_ptr<MemberProcess> Cluster::Make(const ProcessStart& start) {
  const auto exited = [this, number = start.number](const std::string& how) {
    for (const Child& child : children_) {
      if (child.process->start().number == number) {
        return Remove(*child.process, how);
      }
    }
  };
  switch (start.id.role) {
    case controller::Role::kDataServer:
      return std::make_unique<DataServerProcess>(world_, start, exited);
    case controller::Role::kParameterServer:
      return std::make_unique<ParameterServerProcess>(
          world_, start, exited, world_.disks[start.id.slot]);
    case controller::Role::kWorker:
      break;
  }
  return std::make_unique<WorkerProcess>(world_, start, exited);
}

void Cluster::Start(const controller::StartProcess& start, const LifePtr& parent) {
  if (start.id.role == controller::Role::kParameterServer && world_.setup.loses_snapshots &&
      controller_ != nullptr && controller_->state().recovery.going_back &&
      world_.scheduler.Chance(0.2)) {
    LoseSnapshots(start.id.slot);
  }
  children_.push_back({Make({start.id, start.generation, ++processes_}), parent});
}

void Cluster::LoseSnapshots(std::uint32_t slot) {
  if (world_.disks[slot].LoseSnapshots().ok()) {  // it may be full
    world_.updates.SnapshotsLost(slot);
    world_.scheduler.Record("fault", "loses the snapshots of parameter-server", slot);
  }
}

void Cluster::Kill(MemberProcess& process, const std::string& how, Death death) {
  world_.scheduler.Record(process.life->name, how);
  Remove(process, how, death);
}

void Cluster::Remove(MemberProcess& process, const std::string& how, Death death) {
  const auto child = std::ranges::find_if(
      children_, [&](const Child& each) { return each.process.get() == &process; });
  if (auto* worker = dynamic_cast<WorkerProcess*>(&process)) {
    worker->CheckLosses();
  }
  process.life->ended = true;
  world_.network.Remove(process);
  process.OnKilled(death);
  world_.scheduler.After(world_.scheduler.Random(milliseconds(1), milliseconds(20)),
                         child->parent,
                         [this, parent = child->parent, start = process.start(), how] {
                           if (controller_ != nullptr && controller_->life == parent) {
                             controller_->Handle(controller::ProcessExited{
                                 .id = start.id, .generation = start.generation, .how = how});
                           }
                         });
  graveyard_.push_back(std::move(child->process));
  children_.erase(child);
}

void Cluster::KillAll(Death death) {
  while (!children_.empty()) {
    Kill(*children_.back().process, "is killed with the group", death);
  }
}

std::vector<MemberProcess*> Cluster::members() const {
  std::vector<MemberProcess*> members;
  for (const Child& child : children_) {
    members.push_back(child.process.get());
  }
  return members;
}

void Cluster::CheckDisks() {
  const controller::JobState& state = controller_->state();
  world_.updates.CheckStored(state.job_uid, state.checkpoint);
  if (world_.setup.job.only_checkpoints) {
    return;
  }
  for (BucketId bucket = 0; bucket < state.buckets.size(); ++bucket) {
    world_.updates.CheckEnd(state.job_uid, state.buckets[bucket].primary.slot, bucket);
  }
}

}  // namespace adamant::simulation
