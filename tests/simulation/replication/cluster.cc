#include "tests/simulation/replication/cluster.h"

#include <algorithm>
#include <string>
#include <utility>

namespace adamant::replication_simulation {

Cluster::Cluster(World& world) : world_(world), slots_(world.setup.servers) {
  for (std::uint32_t slot = 0; slot < world_.setup.servers; ++slot) {
    disks_.push_back(std::make_unique<Disk>());
    disks_.back()->Lie(world_.Has(Mutation::kLyingDisks), true);
  }
  world_.network.on_opened = [this](Place from, Place to) {
    ServerProcess* const sender = Running(from);
    ServerProcess* const peer = Running(to);
    if (sender != nullptr && peer != nullptr && peer->holder().incarnation != 0) {
      world_.scheduler.After(Clock::Duration(0), sender->life, [sender, to = peer->holder()] {
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
      {.bucket = [this](BucketId bucket, const ps::Holder& holder) -> const ps::Bucket* {
         const ServerProcess* const server = Find(holder);
         return server == nullptr ? nullptr : server->bucket(bucket);
       },
       .lives = [this](const ps::Holder& holder) { return Find(holder) != nullptr; },
       .disk = [this](std::uint32_t slot) -> const Disk& { return *disks_[slot]; }});
  StartController();
  writer_incarnations_.assign(world_.setup.writers, 0);
  writers_.resize(world_.setup.writers);
  for (std::uint32_t writer = 0; writer < world_.setup.writers; ++writer) {
    RestartWriter(writer);
  }
}

ServerProcess* Cluster::Find(const ps::Holder& holder) const {
  ServerProcess* const process = slots_[holder.slot].process.get();
  return process != nullptr && process->holder() == holder ? process : nullptr;
}

// --- Processes

void Cluster::Start(std::uint32_t slot, std::uint64_t generation) {
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
  slots_[slot].process = std::make_unique<ServerProcess>(world_, *this, slot, uid, *disks_[slot]);
}

void Cluster::KeepDown(std::uint32_t slot, Clock::Duration time) {
  slots_[slot].down_until = std::max(slots_[slot].down_until, world_.scheduler.Now() + time);
}

void Cluster::End(ServerProcess& server) {
  const std::uint32_t slot = server.holder().slot;
  if (slots_[slot].process.get() != &server) {
    return;
  }
  world_.scheduler.Record(server.life->name, "ends");
  server.life->ended = true;
  if (world_.tracer != nullptr) {
    world_.tracer->Crashes(slot);
  }
  deaths_[server.holder()] = world_.scheduler.Now();
  const std::size_t survivors = disks_[slot]->store().unflushed();
  disks_[slot]->Close(world_.scheduler.rng().Below(survivors + 1));
  for (auto& [id, connection] : connections_) {
    if (connection.server == &server) {
      Doom(id, milliseconds(500));
    }
  }
  dead_servers_.push_back(std::move(slots_[slot].process));
  TellExit(slot);
}

// Who runs a process sees its end, and tells the controller that there is.
void Cluster::TellExit(std::uint32_t slot) {
  ControllerProcess* const controller = controller_.get();
  if (controller != nullptr) {
    world_.scheduler.After(world_.scheduler.Random(milliseconds(1), milliseconds(300)),
                           controller->life,
                           [controller, slot, generation = slots_[slot].generation] {
                             controller->OnExited(slot, generation);
                           });
  }
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
  power_lost_at_ = world_.scheduler.Now();
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].process != nullptr) {
      End(*slots_[slot].process);
    }
    const std::size_t survivors = disks_[slot]->store().unflushed();
    disks_[slot]->LosePower(
        world_.scheduler.Chance(0.5) ? 0 : world_.scheduler.rng().Below(survivors + 1));
  }
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
          .start = [this](std::uint32_t slot,
                          std::uint64_t generation) { Start(slot, generation); },
          .kill = [this](std::uint32_t slot, std::uint64_t generation) { Kill(slot, generation); },
          .send =
              [this](std::uint64_t connection, const controller::ControllerMessage& message) {
                SendToServer(connection, message);
              },
          .close = [this](std::uint64_t connection) { Doom(connection, milliseconds(100)); }});
  const controller::JobController::Survivors survivors = FindSurvivors();
  controller_->Begin(survivors);
  for (const controller::StartProcess& process : survivors.running) {
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
}

void Cluster::StopWriters() {
  for (const auto& writer : writers_) {
    writer->Stop();
  }
}

// --- Ways

std::uint64_t Cluster::Connect(ServerProcess& server) {
  if (controller_ == nullptr) {
    return 0;
  }
  connections_[++last_connection_] = {.slot = server.holder().slot,
                                      .server = &server,
                                      .controller = controller_.get(),
                                      .doomed = false};
  return last_connection_;
}

void Cluster::Disconnect(std::uint64_t connection) { Doom(connection, milliseconds(5)); }

// Each end hears of it in its own time.
void Cluster::Doom(std::uint64_t id, Clock::Duration within) {
  Connection& connection = connections_.at(id);
  if (std::exchange(connection.doomed, true)) {
    return;
  }
  const auto when = [&] { return world_.scheduler.Random(microseconds(100), within); };
  world_.scheduler.After(
      when(), connection.server->life, [server = connection.server, id] { server->OnBroken(id); });
  world_.scheduler.After(when(),
                         connection.controller->life,
                         [controller = connection.controller, id] { controller->OnBroken(id); });
}

void Cluster::TellController(std::uint64_t id, controller::MemberMessage message) {
  const Connection& connection = connections_.at(id);
  if (connection.doomed) {
    return;
  }
  if (!world_.network.Send(connection.slot,
                           world_.controller_place(),
                           Channel::kController,
                           connection.controller->life,
                           [this, id, message = std::move(message)] {
                             if (!connections_.at(id).doomed) {
                               connections_.at(id).controller->OnMessage(id, message);
                             }
                           })) {
    Doom(id, seconds(3));
  }
}

void Cluster::SendToServer(std::uint64_t id, const controller::ControllerMessage& message) {
  const Connection& connection = connections_.at(id);
  if (connection.doomed) {
    return;
  }
  if (!world_.network.Send(world_.controller_place(),
                           connection.slot,
                           Channel::kController,
                           connection.server->life,
                           [server = connection.server, id, message] {
                             server->OnControllerMessage(id, message);
                           })) {
    Doom(id, seconds(3));
  }
}

void Cluster::SendToPeer(const ps::Holder& from, const ps::Holder& to, ps::PeerMessage message) {
  ServerProcess* const receiver = Find(to);
  if (receiver == nullptr) {
    return;
  }
  const Channel channel = message.bulk() ? Channel::kBulk : Channel::kPeerControl;
  world_.network.Send(
      from.slot, to.slot, channel, receiver->life, [receiver, from, message = std::move(message)] {
        receiver->OnPeerMessage(from, message);
      });
}

void Cluster::SendPush(const Writer& writer, std::uint32_t target, const Push& push) {
  ServerProcess* const receiver = Running(target);
  if (receiver == nullptr || writer.life->ended) {
    return;
  }
  const Place place = world_.writer_place(push.writer.slot);
  world_.network.Send(place, target, Channel::kWriter, receiver->life, [receiver, place, push] {
    receiver->OnPush(place, push);
  });
}

void Cluster::SendFetch(const Writer& writer, std::uint32_t target, const Fetch& fetch) {
  ServerProcess* const receiver = Running(target);
  if (receiver == nullptr || writer.life->ended) {
    return;
  }
  const Place place = world_.writer_place(fetch.writer.slot);
  world_.network.Send(place, target, Channel::kWriter, receiver->life, [receiver, fetch] {
    receiver->OnFetch(fetch);
  });
}

void Cluster::AnswerWriter(std::uint32_t slot, Place place, PushAnswer answer) {
  Writer* const writer = writers_[place - world_.writer_place(0)].get();
  world_.network.Send(
      slot, place, Channel::kWriter, writer->life, [writer, answer = std::move(answer)] {
        writer->OnAnswer(answer);
      });
}

// Mostly right.
std::uint32_t Cluster::GuessPrimary(std::uint32_t bucket) {
  if (controller_ != nullptr && bucket < controller_->records().size() &&
      world_.scheduler.Chance(0.8)) {
    return controller_->records()[bucket].primary.slot;
  }
  return static_cast<std::uint32_t>(world_.scheduler.rng().Below(world_.setup.servers));
}

}  // namespace adamant::replication_simulation
