#include "tests/simulation/job/faults.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/simulation/job/processes/parameter_server_process.h"

namespace adamant::simulation {
namespace {

// About what the job takes undisturbed.
Clock::Duration ExpectedTime(const Setup& setup) {
  const std::uint64_t batches = setup.train_examples / setup.batch_size * setup.job.epochs;
  return setup.step_time / 2 * static_cast<std::int64_t>(batches) /
         static_cast<std::int64_t>(setup.job.workers * setup.training.threads);
}

}  // namespace

Faults::Faults(World& world, Cluster& cluster)
    : world_(world),
      cluster_(cluster),
      planned_(world.scheduler.Between(kFewest, kMost)),
      longest_gap_(ExpectedTime(world.setup) / static_cast<std::int64_t>(planned_)) {}

void Faults::PlanNext() {
  if (injected_ < planned_) {
    const auto at =
        std::max(world_.scheduler.Now() + world_.scheduler.Random(milliseconds(1), longest_gap_),
                 rests_until_);
    world_.scheduler.At(at, nullptr, [this] {
      if (world_.scheduler.Now() >= rests_until_) {
        Inject();
      }
      PlanNext();
    });
  }
}

void Faults::Rest(Clock::Duration time) {
  Lasts(time);
  rests_until_ = std::max(rests_until_, world_.scheduler.Now() + time);
}

void Faults::Inject() {
  ++injected_;
  Lasts(Clock::Duration(0));
  switch (world_.scheduler.Between(0, 14)) {
    case 0:
    case 1:
    case 2:
      return KillSome();
    case 3:
    case 4:
      return BreakSome();
    case 5:
      return SilenceOne();
    case 6:
      return SlowDown();
    case 7:
    case 8:
      return PauseOne();
    case 9:
      return FillDisk();
    case 10:
      return FailSync();
    case 11:
      return CutOffOne();
    case 12:
      return SlowDisk();
    case 13:
      return StallOne();
    default:
      return CrashController();
  }
}

void Faults::Lasts(Clock::Duration time) {
  over_at_ = std::max(over_at_, world_.scheduler.Now() + time);
}

MemberProcess* Faults::AnyMember() {
  const std::vector<MemberProcess*> members = cluster_.members();
  return members.empty() ? nullptr : members[world_.scheduler.rng().Below(members.size())];
}

void Faults::KillSome() {
  const std::uint64_t count = world_.scheduler.Chance(0.2) ? 2 : 1;
  const Death death = world_.scheduler.Chance(0.25) ? Death::kPowerLost : Death::kKilled;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (MemberProcess* const member = AnyMember()) {
      cluster_.Kill(*member, death == Death::kKilled ? "is killed" : "loses its power", death);
    }
  }
}

void Faults::BreakSome() {
  if (MemberProcess* const member = AnyMember();
      member != nullptr && world_.scheduler.Chance(0.4)) {
    world_.scheduler.Record("fault", "breaks all streams of " + member->life->name);
    return world_.network.BreakAll(*member);
  }
  for (const StreamId stream : world_.network.OpenStreams()) {
    if (world_.scheduler.Chance(0.3)) {
      world_.scheduler.Record("fault", "breaks stream", stream);
      world_.network.Break(stream);
    }
  }
}

// Some outlast the controller's timeout by far.
Clock::Duration Faults::CutTime() {
  return world_.scheduler.Random(milliseconds(100),
                                 world_.scheduler.Chance(0.2) ? seconds(40) : seconds(15));
}

void Faults::SilenceOne() {
  const std::vector<StreamId> streams = world_.network.OpenStreams();
  if (streams.empty()) {
    return;
  }
  const StreamId stream = streams[world_.scheduler.rng().Below(streams.size())];
  const auto time = CutTime();
  world_.scheduler.Record("fault", "silences one side of stream", stream);
  world_.network.Silence(stream, world_.scheduler.Chance(0.5), time);
  Lasts(time);
}

Endpoint* Faults::Find(const LifePtr& life) {
  if (cluster_.controller() != nullptr && cluster_.controller()->life == life) {
    return cluster_.controller();
  }
  const std::vector<MemberProcess*> members = cluster_.members();
  const auto found = std::ranges::find(members, life, &MemberProcess::life);
  return found == members.end() ? nullptr : *found;
}

void Faults::CutOffOne() {
  if (MemberProcess* const member = AnyMember()) {
    CutOff(member->life);
  }
}

void Faults::CutOff(const LifePtr& life) {
  Endpoint* const process = Find(life);
  if (process == nullptr) {
    return;
  }
  const auto time = CutTime();
  const bool all = world_.scheduler.Chance(0.5);
  const std::uint64_t directions = world_.scheduler.Between(0, 2);  // out, in, both
  world_.scheduler.Record("fault", "cuts off " + life->name, all ? 1 : 0, directions);
  for (const StreamId stream : world_.network.StreamsOf(*process)) {
    if (!all && world_.scheduler.Chance(0.5)) {
      continue;
    }
    if (directions != 1) {
      world_.network.Silence(stream, world_.network.IsClient(stream, *process), time);
    }
    if (directions != 0) {
      world_.network.Silence(stream, !world_.network.IsClient(stream, *process), time);
    }
  }
  Lasts(time);
}

void Faults::SlowDown() {
  const auto time = world_.scheduler.Random(seconds(1), seconds(8));
  for (const StreamId stream : world_.network.OpenStreams()) {
    if (world_.scheduler.Chance(0.3)) {
      world_.scheduler.Record("fault", "slows stream", stream);
      world_.network.Slow(stream, world_.scheduler.Random(milliseconds(20), milliseconds(800)));
      world_.scheduler.After(
          time, nullptr, [this, stream] { world_.network.Slow(stream, Clock::Duration(0)); });
    }
  }
  Lasts(time);
}

void Faults::PauseOne() {
  if (ControllerProcess* const controller = cluster_.controller();
      controller != nullptr && world_.scheduler.Chance(0.15)) {
    return Pause(controller->life, PauseTime(controller->life));
  }
  if (MemberProcess* const member = AnyMember()) {
    Pause(member->life, PauseTime(member->life));
  }
}

// Half of them are longer than a lease and than the controller's timeout; some of its own are
// longer than workers pause their pushes.
Clock::Duration Faults::PauseTime(const LifePtr& life) {
  if (world_.scheduler.Chance(0.5)) {
    return world_.scheduler.Random(milliseconds(50), seconds(4));
  }
  const bool controller = cluster_.controller() != nullptr && cluster_.controller()->life == life;
  return controller && world_.scheduler.Chance(0.5)
             ? world_.scheduler.Random(seconds(40), seconds(60))
             : world_.scheduler.Random(seconds(10), seconds(16));
}

void Faults::Pause(const LifePtr& life, Clock::Duration time) {
  Lasts(time);
  if (auto* server = dynamic_cast<ParameterServerProcess*>(Find(life))) {
    server->Pauses(time);
  }
  world_.scheduler.Record("fault", "pauses " + life->name);
  life->paused_until = std::max(life->paused_until, world_.scheduler.Now() + time);
}

// One disk at a time and never long: a job whose disk stays full must fail.
void Faults::FillDisk() {
  if (world_.scheduler.Now() < disk_free_at_) {
    return FailSync();
  }
  const auto slot = static_cast<std::uint32_t>(world_.scheduler.rng().Below(world_.disks.size()));
  const auto time = world_.scheduler.Random(milliseconds(100), seconds(5));
  world_.scheduler.Record("fault", "fills the disk of parameter-server", slot);
  disk_free_at_ = world_.scheduler.Now() + 2 * time + seconds(10);
  Disk& disk = world_.disks[slot];
  disk.full_until = std::max(disk.full_until, world_.scheduler.Now() + time);
  disk.SetFull(true);
  world_.scheduler.At(disk.full_until, nullptr, [this, &disk] {
    disk.SetFull(world_.scheduler.Now() < disk.full_until);
  });
  HinderServer(slot, time + seconds(1));  // it tries again after a second
  Lasts(time);
}

void Faults::HinderServer(std::uint32_t slot, Clock::Duration time) {
  for (MemberProcess* const member : cluster_.members()) {
    auto* server = dynamic_cast<ParameterServerProcess*>(member);
    if (server != nullptr && server->start().id.slot == slot) {
      server->Hindered(time);
    }
  }
}

void Faults::SlowDisk() {
  const auto slot = static_cast<std::uint32_t>(world_.scheduler.rng().Below(world_.disks.size()));
  const auto time = world_.scheduler.Random(seconds(1), seconds(15));
  world_.scheduler.Record("fault", "slows the disk of parameter-server", slot);
  Clock::TimePoint& until = world_.disks[slot].slow_until;
  until = std::max(until, world_.scheduler.Now() + time);
  HinderServer(slot, time + Disk::kSlow);
  Lasts(time);
}

// It goes on and hears others; they hear of it when they may have forgotten it.
void Faults::StallOne() {
  const bool controller = cluster_.controller() != nullptr && world_.scheduler.Chance(0.15);
  Endpoint* const process =
      controller ? cluster_.controller() : static_cast<Endpoint*>(AnyMember());
  if (process == nullptr) {
    return;
  }
  const auto time = world_.scheduler.Random(milliseconds(500), seconds(12));
  world_.scheduler.Record("fault", "stalls what is sent by " + process->life->name);
  Clock::TimePoint& from = process->life->sends_from;
  from = std::max(from, world_.scheduler.Now() + time);
  Lasts(time);
}

void Faults::FailSync() {
  const std::size_t slot = world_.scheduler.rng().Below(world_.disks.size());
  world_.scheduler.Record("fault", "fails the next sync of parameter-server", slot);
  world_.disks[slot].store().FailNextSync();
}

// On one machine the controller's processes die with it; in a cluster they live on, and if it is
// away for long they go from epoch to epoch without it.
void Faults::CrashController() {
  using Extent = Cluster::Extent;
  Extent extent = Extent::kAlone;
  if (world_.scheduler.Chance(0.3)) {
    extent = world_.scheduler.Chance(0.4) ? Extent::kPower : Extent::kGroup;
  }
  const bool long_away = extent == Extent::kAlone && world_.scheduler.Chance(0.8);
  const auto delay = long_away ? world_.scheduler.Random(seconds(20), seconds(180))
                               : world_.scheduler.Random(milliseconds(50), seconds(3));
  cluster_.CrashController(extent, delay);
  Lasts(delay);
}

}  // namespace adamant::simulation
