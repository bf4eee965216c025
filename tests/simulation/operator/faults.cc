#include "tests/simulation/operator/faults.h"

#include "tests/simulation/operator/user.h"

namespace adamant::orchestration {

namespace {

constexpr seconds kShortest{5};
constexpr seconds kLongest{40};

}  // namespace

Faults::Faults(World& world,
               std::vector<std::unique_ptr<OperatorProcess>>& operators,
               Network& network,
               Nodes& nodes,
               User& user)
    : world_(world), operators_(operators), network_(network), nodes_(nodes), user_(user) {}

void Faults::Begin() {
  until_ = world_.scheduler.Now() + world_.scheduler.Random(kShortest, kLongest);
  PlanNext();
}

OperatorProcess& Faults::Any() {
  return *operators_[world_.scheduler.rng().Below(operators_.size())];
}

void Faults::PlanNext() {
  const auto delay = world_.scheduler.Random(milliseconds(50), seconds(4));
  world_.scheduler.After(delay, nullptr, [this] {
    if (world_.scheduler.Now() >= until_) {
      return EndAll();
    }
    Inject();
    PlanNext();
  });
}

void Faults::Inject() {
  ++injected_;
  const std::uint64_t which = world_.scheduler.rng().Below(23);
  if (which < 10) {
    InjectOnOperators(which);
  } else {
    InjectOnPods(which);
  }
}

void Faults::InjectOnOperators(std::uint64_t which) {
  OperatorProcess& process = Any();
  switch (which) {
    case 0:
      process.Crash();
      return Succeed(process);
    case 1:
    case 2:
    case 3:  // in the midst of what it does next
      process.CrashAtWrite(1 + world_.scheduler.rng().Below(8), world_.scheduler.Chance(0.5));
      return Succeed(process);
    case 4:
      process.StandDown();
      return Succeed(process);
    case 5:
      return Succeed(process);
    case 6:
    case 7:
      return process.Lag(world_.scheduler.Random(milliseconds(100), seconds(6)),
                         world_.scheduler.Random(seconds(1), seconds(10)));
    case 8:
      world_.api.Compact();
      return;
    default:
      return Trouble(process);
  }
}

// Another operator leads some time after; if this one still does, it learns of it later yet.
void Faults::Succeed(OperatorProcess& process) {
  for (const auto& other : operators_) {
    if (other.get() != &process) {
      const auto begin = world_.scheduler.Random(milliseconds(50), seconds(6));
      const auto overlap = world_.scheduler.Random(milliseconds(0), seconds(5));
      world_.scheduler.After(begin, nullptr, [this, each = other.get()] {
        if (!over_) {
          each->Lead();
        }
      });
      world_.scheduler.After(begin + overlap, nullptr, [this, &process] {
        if (!over_) {
          process.StandDown();
        }
      });
    }
  }
}

void Faults::Trouble(OperatorProcess& process) {
  const auto chance = [&] {
    return world_.scheduler.Chance(0.5) ? 0.0 : 0.4 * world_.scheduler.rng().Uniform();
  };
  process.transport().SetTroubles({.refused = chance(),
                                   .answer_lost = chance(),
                                   .late = chance(),
                                   .slow = chance(),
                                   .cut = chance()});
  world_.scheduler.After(world_.scheduler.Random(seconds(1), seconds(10)), nullptr, [&process] {
    process.transport().SetTroubles({});
  });
}

void Faults::InjectOnPods(std::uint64_t which) {
  const auto time = world_.scheduler.Random(seconds(1), seconds(20));
  switch (which) {
    case 10:
    case 11:
      return nodes_.CrashProcess();
    case 12:
      return nodes_.DeletePod(world_.scheduler.Chance(0.5));
    case 13:
      return LoseNode();
    case 14:
      return network_.BreakOne();
    case 15:
      return user_.SuspendFor(time);
    case 16:
      return user_.Recreate();
    case 17:
    case 18:
      return user_.Scale();
    case 19:
      return nodes_.EvictPod();
    case 20:
    case 21:
      return Trouble(Any());
    default:
      return user_.OccupyNames(time);
  }
}

// Only what has copies survives a server that is given up with its volume.
void Faults::LoseNode() {
  const auto time = world_.scheduler.Random(
      seconds(1), user_.copies() > 1 ? Clock::Duration(seconds(60)) : Clock::Duration(seconds(8)));
  if (world_.scheduler.Chance(0.5)) {
    nodes_.Pause(time);
  } else {
    nodes_.CutPower(time);
  }
}

void Faults::EndAll() {
  over_ = true;
  world_.scheduler.Record("faults", "are over");
  user_.Resume();
  for (const auto& process : operators_) {
    process->transport().SetTroubles({});
    process->CrashAtWrite(0, false);
    process->StandDown();
  }
  Any().Lead();
}

}  // namespace adamant::orchestration
