// What goes wrong between processes.

#include "tests/simulation/replication/faults.h"

namespace adamant::replication_simulation {

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
