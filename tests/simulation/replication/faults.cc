#include "tests/simulation/replication/faults.h"

#include <algorithm>
#include <chrono>

namespace adamant::replication_simulation {

void Faults::PlanNext() {
  // Some come in quick succession.
  const auto wait = world_.scheduler.Chance(0.3) ? Some(milliseconds(10), seconds(1))
                                                 : Some(seconds(1), seconds(7));
  world_.scheduler.After(wait, nullptr, [this] {
    Inject();
    ++injected_;
    if (injected_ < world_.setup.faults) {
      PlanNext();
    }
  });
}

void Faults::Lasts(Clock::Duration time) {
  over_at_ = std::max(over_at_, world_.scheduler.Now() + time);
}

std::uint32_t Faults::AnySlot() {
  return static_cast<std::uint32_t>(world_.scheduler.rng().Below(world_.setup.servers));
}

std::uint32_t Faults::AnyPrimary() {
  return cluster_.GuessPrimary(
      static_cast<std::uint32_t>(world_.scheduler.rng().Below(world_.setup.buckets)));
}

void Faults::Inject() {
  switch (world_.scheduler.Between(0, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return InjectProcessFault();
    case 4:
    case 5:
    case 6:
    case 7:
      return InjectNetworkFault();
    case 8:
      return InjectDiskFault();
    default:
      return InjectControllerFault();
  }
}

void Faults::Heal() {
  Tell("all is well again");
  cluster_.StopHistories();
  world_.network.MendAll();
  for (std::uint32_t slot = 0; slot < world_.setup.servers; ++slot) {
    cluster_.SetUnreachable(slot, false);
    cluster_.disk(slot).SetFull(false);
    cluster_.disk(slot).SetLatency(Clock::Duration(0));
    cluster_.disk(slot).Lie(world_.Has(Mutation::kLyingDisks), true);
  }
}

// --- Processes

void Faults::InjectProcessFault() {
  const std::uint32_t slot = world_.scheduler.Chance(0.5) ? AnyPrimary() : AnySlot();
  switch (world_.scheduler.Between(0, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return KillSome();
    case 4:
      return KillAll();
    case 5:
      return LosePower();
    case 6:
    case 7:
    case 8:
      return Pause(slot);
    case 9:
      return Drain(slot);
    case 10:
      return world_.tracer == nullptr ? MoveVolume(slot) : KillSome();
    default: {
      const auto writer =
          static_cast<std::uint32_t>(world_.scheduler.rng().Below(world_.setup.writers));
      Tell("restarts a writer", writer);
      return cluster_.RestartWriter(writer);
    }
  }
}

void Faults::KillSome() {
  const std::uint64_t count = world_.scheduler.Chance(0.25) ? 2 : 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t slot = world_.scheduler.Chance(0.5) ? AnyPrimary() : AnySlot();
    if (ServerProcess* const server = cluster_.Running(slot)) {
      const auto away =
          world_.scheduler.Chance(0.3) ? Some(seconds(1), seconds(14)) : Clock::Duration(0);
      Tell("kills a server", slot);
      cluster_.KeepDown(slot, away);
      cluster_.End(*server);
      Lasts(away);
    }
  }
}

void Faults::KillAll() {
  Tell("kills all servers");
  for (std::uint32_t slot = 0; slot < world_.setup.servers; ++slot) {
    if (ServerProcess* const server = cluster_.Running(slot)) {
      const auto away = Some(milliseconds(0), seconds(10));
      cluster_.KeepDown(slot, away);
      cluster_.End(*server);
      Lasts(away);
    }
  }
}

void Faults::LosePower() {
  Tell("switches all servers off");
  cluster_.LosePower();
  if (world_.scheduler.Chance(0.5)) {
    cluster_.CrashController(Some(milliseconds(50), seconds(3)));
  }
  Lasts(seconds(4));
}

void Faults::Pause(std::uint32_t slot) {
  if (ServerProcess* const server = cluster_.Running(slot)) {
    Pause(server->life, PauseTime());
  }
}

// Half of the pauses are longer than leases and promises.
Clock::Duration Faults::PauseTime() {
  return world_.scheduler.Chance(0.5) ? Some(milliseconds(50), seconds(4))
                                      : Some(seconds(4), seconds(12));
}

void Faults::Pause(const LifePtr& life, Clock::Duration time) {
  Tell("pauses " + life->name, static_cast<std::uint64_t>(time.count()) / 1'000'000);
  const Clock::TimePoint now = world_.scheduler.Now();
  life->paused_until = std::max(life->paused_until, now + time);
  if (const ServerProcess* const server = cluster_.Find(life)) {
    cluster_.disk(server->server().slot).Hindered(now, now + time);
  }
  Lasts(time);
}

void Faults::Crash(const LifePtr& life) {
  if (ServerProcess* const server = cluster_.Find(life)) {
    return cluster_.End(*server);
  }
  life->ended = true;  // a controller, perhaps one that was replaced
  if (cluster_.controller() != nullptr && cluster_.controller()->life == life) {
    const auto away = Some(milliseconds(50), seconds(8));
    cluster_.CrashController(away);
    Lasts(away);
  }
}

void Faults::CutOff(const LifePtr& life) {
  if (const ServerProcess* const server = cluster_.Find(life)) {
    return world_.scheduler.Chance(0.5) ? Isolate(server->server().slot)
                                        : CutFromController(server->server().slot);
  }
  for (std::uint32_t slot = 0; slot < world_.setup.servers; ++slot) {
    if (world_.scheduler.Chance(0.5)) {
      CutFromController(slot);
    }
  }
}

// An orderly stop: its buckets are handed over, then it goes.
void Faults::Drain(std::uint32_t slot) {
  ServerProcess* const server = cluster_.Running(slot);
  if (server == nullptr) {
    return;
  }
  Tell("drains a server", slot);
  server->Drain();
  const auto time = Some(milliseconds(500), seconds(6));
  world_.scheduler.After(time, server->life, [this, server] { cluster_.End(*server); });
  Lasts(time);
}

void Faults::MoveVolume(std::uint32_t slot) {
  // The folder alone tells of who has left it that it has ended, by a mark that such a disk may
  // lack.
  if (cluster_.disk(slot).has_lied()) {
    return;
  }
  const auto time = Some(seconds(1), seconds(14));
  Tell("moves a volume", slot);
  cluster_.MoveVolume(slot, world_.scheduler.Chance(0.5), time);
  Lasts(time);
}

// --- Disks and the controller

void Faults::InjectDiskFault() {
  const std::uint32_t slot = AnySlot();
  switch (world_.scheduler.Between(0, 5)) {
    case 0:
    case 1:
      return FillDisk(slot);
    case 2:
    case 3:
      return SlowDisk(slot);
    case 4:
      Tell("fails a sync to come", slot);
      return cluster_.disk(slot).store().FailNextSync(world_.scheduler.rng().Below(4));
    default:
      return world_.setup.honest_disks ? FillDisk(slot) : CorruptDisk(slot);
  }
}

void Faults::FillDisk(std::uint32_t slot) {
  // A job whose disk stays full fails where it cannot store checkpoints.
  const bool only_checkpoints = world_.setup.only_checkpoints();
  if (only_checkpoints && world_.scheduler.Now() < disk_free_at_) {
    return SlowDisk(slot);
  }
  const auto time = Some(milliseconds(200), seconds(only_checkpoints ? 4 : 8));
  disk_free_at_ = world_.scheduler.Now() + time + seconds(8);
  Disk& disk = cluster_.disk(slot);
  Tell("fills a disk", slot);
  disk.SetFull(true);
  disk.Hindered(world_.scheduler.Now(),
                world_.scheduler.Now() + time + seconds(2));  // it is tried again every second
  world_.scheduler.After(time, nullptr, [&disk] { disk.SetFull(false); });
  Lasts(time);
}

void Faults::SlowDisk(std::uint32_t slot) {
  const auto time = Some(milliseconds(200), seconds(8));
  Disk& disk = cluster_.disk(slot);
  Tell("slows a disk", slot);
  disk.SetLatency(Some(milliseconds(20), milliseconds(1500)));
  disk.Hindered(world_.scheduler.Now(),
                world_.scheduler.Now() + time + seconds(20));  // what queued
  world_.scheduler.After(time, nullptr, [&disk] { disk.SetLatency(Clock::Duration(0)); });
  Lasts(time);
}

void Faults::CorruptDisk(std::uint32_t slot) {
  const auto time = Some(milliseconds(200), seconds(8));
  Disk& disk = cluster_.disk(slot);
  switch (world_.scheduler.Between(0, 2)) {
    case 0:
      Tell("lets a disk lie", slot);
      disk.Lie(true);
      world_.scheduler.After(
          time, nullptr, [this, &disk] { disk.Lie(world_.Has(Mutation::kLyingDisks), true); });
      return Lasts(time);
    case 2:
      // The folder alone tells of who has left it that it has ended, which a damaged one cannot.
      if (cluster_.AwaitsProof(slot)) {
        return;
      }
      Tell("flips a bit of a log", slot);
      disk.Damage();
      if (ServerProcess* const server = cluster_.Running(slot)) {
        cluster_.End(*server);
      }
      return;
    default:
      Tell("flips a bit of a stored value", slot);
      disk.FlipBit(world_.scheduler.rng());
  }
}

void Faults::InjectControllerFault() {
  ControllerProcess* const controller = cluster_.controller();
  const auto time = Some(milliseconds(50), seconds(8));
  Lasts(time);
  if (controller == nullptr) {
    return;
  }
  switch (world_.scheduler.Between(0, 2)) {
    case 0:
      Tell("ends the controller");
      return cluster_.CrashController(time);
    case 1:
      Tell("pauses the controller");
      controller->life->paused_until =
          std::max(controller->life->paused_until, world_.scheduler.Now() + time);
      return;
    default:
      Tell("replaces the controller");
      controller->life->paused_until =
          std::max(controller->life->paused_until, world_.scheduler.Now() + time);
      return cluster_.ReplaceController();
  }
}

// --- Between processes

void Faults::InjectNetworkFault() {
  const std::uint32_t slot = world_.scheduler.Chance(0.5) ? AnyPrimary() : AnySlot();
  const std::uint32_t other = AnySlot();
  switch (world_.scheduler.Between(0, 9)) {
    case 9:
      return IsolateThenKillAll(slot);
    case 0:
      return CutLink(slot, other, true, Some(milliseconds(100), seconds(12)));
    case 1:
      return CutLink(slot, other, false, Some(milliseconds(100), seconds(12)));
    case 2:
      return Isolate(slot);
    case 3:
      return CutFromController(slot);
    case 4:
      return Flap();
    case 5:
      return Lose();
    case 6:
      return SlowDown();
    default:
      return BreakStreams(slot);
  }
}

void Faults::CutLink(Place from, Place to, bool both, Clock::Duration time) {
  Tell(both ? "cuts both ways" : "cuts one way", from, to);
  world_.network.Cut(from, to);
  if (both) {
    world_.network.Cut(to, from);
  }
  world_.scheduler.After(time, nullptr, [=, this] {
    world_.network.Mend(from, to);
    world_.network.Mend(to, from);
  });
  Lasts(time);
}

void Faults::Isolate(std::uint32_t slot) {
  const auto time = Some(milliseconds(500), seconds(12));
  const bool both = world_.scheduler.Chance(0.7);
  const bool controller_too = world_.scheduler.Chance(0.5);
  for (std::uint32_t other = 0; other < world_.setup.servers; ++other) {
    if (other != slot) {
      CutLink(slot, other, both, time);
    }
  }
  if (controller_too) {
    CutLink(slot, world_.controller_place(), true, time);
    cluster_.SetUnreachable(slot, true);
    world_.scheduler.After(time, nullptr, [this, slot] { cluster_.SetUnreachable(slot, false); });
  }
}

// All end as one comes back that was cut off from the others for long enough to be replaced: what
// it had and nobody else meets what was committed since.
void Faults::IsolateThenKillAll(std::uint32_t slot) {
  const auto time = Some(seconds(4), seconds(8));
  for (std::uint32_t other = 0; other < world_.setup.servers; ++other) {
    if (other != slot) {
      CutLink(slot, other, true, time);
    }
  }
  const auto later = time + Some(milliseconds(0), milliseconds(1500));  // it catches up meanwhile
  world_.scheduler.After(later, nullptr, [this] { KillAll(); });
  Lasts(later);
}

void Faults::CutFromController(std::uint32_t slot) {
  const auto time = Some(milliseconds(500), seconds(14));
  CutLink(slot, world_.controller_place(), world_.scheduler.Chance(0.6), time);
  cluster_.SetUnreachable(slot, true);
  world_.scheduler.After(time, nullptr, [this, slot] { cluster_.SetUnreachable(slot, false); });
}

void Faults::Flap() {
  const Place from = AnySlot();
  const Place to = world_.scheduler.Chance(0.3) ? world_.controller_place() : AnySlot();
  Clock::Duration time{0};
  for (int i = 0; i < 8; ++i) {
    time += Some(milliseconds(50), milliseconds(1500));
    world_.scheduler.After(time, nullptr, [=, this] {
      i % 2 == 0 ? world_.network.Cut(from, to) : world_.network.Mend(from, to);
    });
  }
  Tell("lets a link flap", from, to);
  Lasts(time);
}

void Faults::Lose() {
  const auto time = Some(seconds(1), seconds(10));
  const double share = world_.scheduler.rng().Uniform(0.05, 0.5);
  Tell("loses some messages");
  for (Place from = 0; from < world_.setup.servers; ++from) {
    for (Place to = 0; to < world_.setup.servers; ++to) {
      if (world_.scheduler.Chance(0.5)) {
        world_.network.SetLoss(from, to, share);
        world_.scheduler.After(time, nullptr, [=, this] { world_.network.SetLoss(from, to, 0); });
      }
    }
  }
  Lasts(time);
}

void Faults::SlowDown() {
  const auto time = Some(seconds(1), seconds(8));
  Tell("slows links");
  for (Place from = 0; from <= world_.controller_place(); ++from) {
    for (Place to = 0; to <= world_.controller_place(); ++to) {
      if (world_.scheduler.Chance(0.3)) {
        world_.network.SetDelay(from, to, Some(milliseconds(20), milliseconds(2000)));
        world_.scheduler.After(
            time, nullptr, [=, this] { world_.network.SetDelay(from, to, Clock::Duration(0)); });
      }
    }
  }
  Lasts(time);
}

void Faults::BreakStreams(std::uint32_t slot) {
  Tell("breaks streams", slot);
  for (Place other = 0; other <= world_.controller_place(); ++other) {
    if (other != slot && world_.scheduler.Chance(0.7)) {
      world_.network.Break(slot, other);
    }
    if (other != slot && world_.scheduler.Chance(0.7)) {
      world_.network.Break(other, slot);
    }
  }
}

}  // namespace adamant::replication_simulation
