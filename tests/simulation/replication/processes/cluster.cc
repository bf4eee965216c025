#include "tests/simulation/replication/processes/cluster.h"

#include <algorithm>
#include <string>
#include <utility>

namespace adamant::replication_simulation {

Cluster::Cluster(World& world)
    : world_(world),
      forked_record_(world, *this),
      slots_(world.setup.servers),
      power_lost_at_(world.setup.servers) {
  for (std::uint32_t slot = 0; slot < world_.setup.servers; ++slot) {
    disks_.push_back(std::make_unique<Disk>());
    disks_.back()->Lie(world_.Has(Mutation::kLyingDisks), true);
  }
  world_.network.on_opened = [this](Place from, Place to) {
    ServerProcess* const sender = Running(from);
    ServerProcess* const peer = Running(to);
    if (sender != nullptr && peer != nullptr && peer->server().incarnation != 0) {
      world_.scheduler.After(Clock::Duration(0), sender->life, [sender, to = peer->server()] {
        sender->OnOpened(to);
      });
    }
  };
  world_.network.on_controller_lost = [this](Place server) {
    for (const auto& [id, connection] : connections_) {
      if (connection.slot == server) {
        Doom(id, seconds(3));
      }
    }
  };
  world_.checker.Look(
      {.bucket = [this](BucketId bucket, const ps::ServerId& server_id) -> const ps::Bucket* {
         const ServerProcess* const server = Find(server_id);
         return server == nullptr ? nullptr : server->bucket(bucket);
       },
       .lives = [this](const ps::ServerId& server_id) { return Find(server_id) != nullptr; },
       .disk = [this](std::uint32_t slot) -> const Disk& { return *disks_[slot]; }});
  StartController();
  writer_incarnations_.assign(world_.setup.writers, 0);
  writers_.resize(world_.setup.writers);
  for (std::uint32_t writer = 0; writer < world_.setup.writers; ++writer) {
    RestartWriter(writer);
  }
  for (std::uint32_t clerk = 0; clerk < world_.setup.clerks; ++clerk) {
    clerks_.push_back(std::make_unique<Clerk>(world_, *this, clerk));
  }
}

ServerProcess* Cluster::Find(const ps::ServerId& server_id) const {
  ServerProcess* const process = slots_[server_id.slot].process.get();
  return process != nullptr && process->server() == server_id ? process : nullptr;
}

ServerProcess* Cluster::Find(const LifePtr& life) const {
  for (const Slot& slot : slots_) {
    if (slot.process != nullptr && slot.process->life == life) {
      return slot.process.get();
    }
  }
  for (const Left& left : left_) {
    if (left.process->life == life) {
      return left.process.get();
    }
  }
  return nullptr;
}

ServerProcess* Cluster::FindAny(const ps::ServerId& server_id) const {
  for (const Left& left : left_) {
    if (left.process->server() == server_id) {
      return left.process.get();
    }
  }
  return Find(server_id);
}

// Who is asked under the address of a slot.
ServerProcess* Cluster::Reach(std::uint32_t slot) {
  for (const Left& left : left_) {
    if (left.process->server().slot == slot && world_.scheduler.Chance(0.5)) {
      return left.process.get();
    }
  }
  return Running(slot);
}

// --- Processes

void Cluster::Start(controller::SlotId id, std::uint64_t generation) {
  if (id.role == controller::Role::kWorker) {
    return StartForeman(generation);
  }
  const std::uint32_t slot = id.slot;
  slots_[slot].generation = generation;
  if (slots_[slot].process == nullptr && !slots_[slot].starting) {
    slots_[slot].starting = true;
    const auto takes = world_.scheduler.Random(milliseconds(20), milliseconds(800));
    const Clock::TimePoint at = std::max(world_.scheduler.Now() + takes, slots_[slot].down_until);
    world_.scheduler.At(at, nullptr, [this, slot] { StartNow(slot); });
  }
}

void Cluster::StartNow(std::uint32_t slot) {
  if (slots_[slot].down_until > world_.scheduler.Now()) {
    return world_.scheduler.At(slots_[slot].down_until, nullptr, [this, slot] { StartNow(slot); });
  }
  slots_[slot].starting = false;
  const std::string uid = world_.Has(Mutation::kRestartKeepsMembership)
                              ? "server-" + std::to_string(slot)
                              : "server-" + std::to_string(slot) + "/" + std::to_string(++starts_);
  slots_[slot].process = std::make_unique<ServerProcess>(
      world_, *this, slot, slots_[slot].generation, uid, *disks_[slot]);
}

void Cluster::KeepDown(std::uint32_t slot, Clock::Duration time) {
  slots_[slot].down_until = std::max(slots_[slot].down_until, world_.scheduler.Now() + time);
}

void Cluster::End(ServerProcess& server) {
  const std::uint32_t slot = server.server().slot;
  if (slots_[slot].process.get() != &server) {
    return EndLeft(server);
  }
  world_.scheduler.Record(server.life->name, "ends");
  server.life->ended = true;
  if (world_.tracer != nullptr) {
    world_.tracer->Crashes(slot);
  }
  deaths_[server.server()] = world_.scheduler.Now();
  const std::size_t survivors = disks_[slot]->store().unflushed();
  disks_[slot]->Close(world_.scheduler.rng().Below(survivors + 1));
  for (auto& [id, connection] : connections_) {
    if (connection.replica == &server) {
      Doom(id, milliseconds(500));
    }
  }
  dead_servers_.push_back(std::move(slots_[slot].process));
  TellExit(slot);
}

// Who runs a process sees its end, and tells the controller that there is.
void Cluster::TellExit(std::uint32_t slot) {
  ControllerProcess* const controller = controller_.get();
  const bool proved = std::ranges::none_of(left_, [&](const Left& left) {
    return left.process->server().slot == slot && left.generation == slots_[slot].generation;
  });
  if (controller != nullptr) {
    world_.scheduler.After(
        world_.scheduler.Random(milliseconds(1), milliseconds(300)),
        controller->life,
        [controller, slot, generation = slots_[slot].generation, proved] {
          controller->OnExited({controller::Role::kParameterServer, slot}, generation, proved);
        });
  }
}

void Cluster::EndLeft(ServerProcess& server) {
  const auto found =
      std::ranges::find_if(left_, [&](const Left& left) { return left.process.get() == &server; });
  if (found == left_.end()) {
    return;
  }
  world_.scheduler.Record(server.life->name, "ends");
  server.life->ended = true;
  for (auto& [id, connection] : connections_) {
    if (connection.replica == &server) {
      Doom(id, milliseconds(500));
    }
  }
  dead_servers_.push_back(std::move(found->process));
  left_.erase(found);
}

void Cluster::MoveVolume(std::uint32_t slot, bool out_of_reach, Clock::Duration time) {
  ServerProcess* const process = Running(slot);
  if (process == nullptr || process->bucket(0) == nullptr) {
    return;
  }
  const Place place = world_.left_place(slot);
  deaths_[process->server()] = world_.scheduler.Now();  // of its disk, as others have it
  process->LoseVolume(place);
  slots_[slot].left = process->server().incarnation;
  left_.push_back({.process = std::move(slots_[slot].process),
                   .generation = slots_[slot].generation,
                   .read_since = {}});
  disks_[slot]->Close(0);
  LosePowerOf(slot);
  for (Place other = 0; other < world_.left_place(0); ++other) {
    if (other == world_.controller_place() || (out_of_reach && world_.scheduler.Chance(0.7))) {
      world_.network.Cut(place, other);
      world_.network.Cut(other, place);
      world_.scheduler.After(time, nullptr, [this, place, other] {
        world_.network.Mend(place, other);
        world_.network.Mend(other, place);
      });
    }
  }
  for (auto& [id, connection] : connections_) {
    if (connection.replica == process) {
      Doom(id, seconds(1));
    }
  }
  TellExit(slot);
}

// Its pod is gone, and nobody sees its end: only who uses the folder next can tell of it.
bool Cluster::AwaitsProof(std::uint32_t slot) const {
  const std::uint64_t left = slots_[slot].left;
  if (left == 0 || controller_ == nullptr) {
    return left != 0;
  }
  const auto unproved = [&](const controller::ServerId& server_id) {
    return server_id.slot == slot && server_id.incarnation <= left &&
           !std::ranges::binary_search(controller_->dead(), server_id);
  };
  return std::ranges::any_of(controller_->records(), [&](const controller::Configuration& record) {
    return std::ranges::any_of(record.replicas, unproved) ||
           (record.learner.has_value() && unproved(*record.learner));
  });
}

void Cluster::Kill(std::uint32_t slot, std::uint64_t generation) {
  if (slots_[slot].generation != generation) {
    return;
  }
  if (slots_[slot].process == nullptr) {
    if (!slots_[slot].starting) {
      TellExit(slot);
    }
    return;
  }
  if (slots_[slot].unreachable) {
    return world_.scheduler.After(
        milliseconds(500), nullptr, [this, slot, generation] { Kill(slot, generation); });
  }
  End(*slots_[slot].process);
}

void Cluster::LosePower() {
  while (!left_.empty()) {
    EndLeft(*left_.back().process);
  }
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].process != nullptr) {
      End(*slots_[slot].process);
    }
    LosePowerOf(slot);
  }
}

void Cluster::LosePowerOf(std::uint32_t slot) {
  power_lost_at_[slot] = world_.scheduler.Now();
  const std::size_t survivors = disks_[slot]->store().unflushed();
  disks_[slot]->LosePower(
      world_.scheduler.Chance(0.5) ? 0 : world_.scheduler.rng().Below(survivors + 1));
}

void Cluster::StartController() {
  if (controller_ != nullptr) {
    old_controllers_.push_back(std::move(controller_));
  }
  controller_ = std::make_unique<ControllerProcess>(
      world_,
      store_,
      ++controllers_,
      ControllerProcess::Body{
          .start = [this](controller::SlotId id,
                          std::uint64_t generation) { Start(id, generation); },
          .kill =
              [this](controller::SlotId id, std::uint64_t generation) {
                if (id.role == controller::Role::kParameterServer) {
                  Kill(id.slot, generation);
                } else if (foreman_ != nullptr && foreman_->generation() == generation) {
                  EndForeman();
                } else {
                  TellExitOfForeman(generation);
                }
              },
          .send =
              [this](std::uint64_t connection, const controller::ControllerMessage& message) {
                SendToMember(connection, message);
              },
          .close = [this](std::uint64_t connection) { Doom(connection, milliseconds(100)); }});
  const controller::JobController::Survivors survivors = FindSurvivors();
  controller_->Begin(survivors);
  for (const controller::StartProcess& process : survivors.running) {
    if (process.id.role == controller::Role::kWorker) {
      continue;
    }
    Slot& slot = slots_[process.id.slot];
    if (slot.process == nullptr && !slot.starting) {
      TellExit(process.id.slot);
    }
  }
  for (auto& [id, connection] : connections_) {
    Doom(id, seconds(3));
  }
}

// Of a process that has ended nobody may know any more. Then its disk must tell that it has, which
// a damaged one cannot.
controller::JobController::Survivors Cluster::FindSurvivors() {
  controller::JobController::Survivors survivors;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const bool runs = slots_[slot].process != nullptr || slots_[slot].starting;
    const bool known = runs || !world_.setup.honest_disks || world_.scheduler.Chance(0.5);
    if (slots_[slot].generation != 0 && known) {
      survivors.running.push_back(
          {{controller::Role::kParameterServer, slot}, slots_[slot].generation});
    }
  }
  if (foreman_ != nullptr) {
    survivors.running.push_back({{controller::Role::kWorker, 0}, foreman_->generation()});
  }
  return survivors;
}

void Cluster::CrashController(Clock::Duration away) {
  if (controller_ == nullptr) {
    return;
  }
  world_.scheduler.Record(controller_->life->name, "ends");
  controller_->life->ended = true;
  old_controllers_.push_back(std::move(controller_));
  for (auto& [id, connection] : connections_) {
    Doom(id, milliseconds(500));
  }
  world_.scheduler.After(away, nullptr, [this] {
    if (controller_ == nullptr) {
      StartController();
    }
  });
}

void Cluster::ReplaceController() {
  if (controller_ != nullptr) {
    StartController();
  }
}

void Cluster::RestartWriter(std::uint32_t writer) {
  if (writers_[writer] != nullptr) {
    writers_[writer]->life->ended = true;
    old_writers_.push_back(std::move(writers_[writer]));
  }
  writers_[writer] =
      std::make_unique<Writer>(world_, *this, writer, ++writer_incarnations_[writer]);
  writers_[writer]->Pause(paused_);
}

void Cluster::StopWriters() {
  for (const auto& writer : writers_) {
    writer->Stop();
  }
  for (const auto& clerk : clerks_) {
    clerk->Stop();
  }
}

}  // namespace adamant::replication_simulation
