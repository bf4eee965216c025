#include "tests/simulation/job/rare_histories.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "operator/core/training/checkpoint_taker.h"
#include "services/common/base/rng.h"
#include "tests/simulation/engine/local_clock.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kHistories = 6;  // of the random numbers of a seed

// Of the seeds whose job can show it.
constexpr double kRollsBack = 0.15;
constexpr double kStretches = 0.4;

// A worker that says nothing for longer is given up.
constexpr auto kSilence = milliseconds(8'800);

// In which its pushes are acknowledged, as a rule.
constexpr auto kToRest = milliseconds(900);

bool SharesWork(const Setup& setup) { return setup.job.workers > 1 && setup.retain_bytes > 0; }

// By how much the clock of the fastest worker is ahead of the controller's, which has to be so far
// that a worker holds no longer than an attempt takes unless its timeout is the longer one.
bool HasFastWorker(const Setup& setup) {
  constexpr std::int64_t kEnough = 70'000'000;
  for (std::uint32_t slot = 0; slot < setup.job.workers; ++slot) {
    if (setup.drift.at({controller::Role::kWorker, slot}) >= setup.controller_drift + kEnough) {
      return true;
    }
  }
  return false;
}

}  // namespace

RareHistories::RareHistories(World& world, Cluster& cluster, Faults& faults, std::uint64_t seed)
    : world_(world), cluster_(cluster), faults_(faults) {
  Rng rng(MixSeed(seed, kHistories));
  const DataEpoch epoch = rng.Below(world.setup.job.epochs);
  if (rng.Uniform() < kRollsBack && SharesWork(world.setup)) {
    roll_back_after_ = epoch;
  }
  if (rng.Uniform() < kStretches && HasFastWorker(world.setup)) {
    stretch_after_ = rng.Below(2);
  }
}

void RareHistories::Passed(std::string_view step, const LifePtr& life) {
  const auto begins = [](std::optional<std::uint64_t>& after) {
    if (!after.has_value() || (*after)-- > 0) {
      return false;
    }
    after.reset();
    return true;
  };
  if (step == "epoch/flush" && begins(roll_back_after_)) {
    flushing_ = true;
  } else if (step == "push/flushed" && std::exchange(flushing_, false)) {
    RollBack(life);
  } else if (step == "checkpoint/pause" && begins(stretch_after_)) {
    StretchPause();
  } else if (step == "checkpoint/take" && std::exchange(stretching_, false)) {
    StretchStore();
  }
}

// All buckets are lost when the first worker has flushed, which then stands still while the others
// do: what is asked of the servers next must not lack what only it can send again.
void RareHistories::RollBack(const LifePtr& flushed) {
  const auto still = world_.scheduler.Random(seconds(2), seconds(8));
  faults_.Rest(still + seconds(2));
  world_.scheduler.After(Clock::Duration(0), nullptr, [this, flushed, still] {
    world_.scheduler.Record("fault", "rolls back while workers flush");
    for (MemberProcess* const member : cluster_.members()) {
      if (member->start().id.role == controller::Role::kParameterServer) {
        cluster_.Kill(*member, "loses its power", Death::kPowerLost);
      }
    }
    faults_.Pause(flushed, still);
  });
}

// An attempt at a checkpoint that takes all of its time, by the controller's clock: a worker's
// answer comes late, and so does what one of the servers is told.
void RareHistories::StretchPause() {
  using Taker = controller::CheckpointTaker;
  const LocalClock clock(world_.scheduler, world_.setup.controller_drift);
  faults_.Rest(clock.ToWorld(Clock::Duration(Taker::kPauseTime + Taker::kStoreTime)));
  stretching_ = true;
  world_.scheduler.After(Clock::Duration(0), nullptr, [this, clock] {
    world_.scheduler.Record("fault", "stretches an attempt at a checkpoint");
    Delay(controller::Role::kWorker, clock.ToWorld(Clock::Duration(kSilence)), kToRest);
  });
}

void RareHistories::StretchStore() {
  const LocalClock clock(world_.scheduler, world_.setup.controller_drift);
  Delay(controller::Role::kParameterServer,
        clock.ToWorld(Clock::Duration(controller::CheckpointTaker::kStoreTime)) -
            world_.scheduler.Random(milliseconds(60), milliseconds(600)),
        Clock::Duration(0));
}

// What is sent on the control stream of one of them, from now on this long, comes later.
void RareHistories::Delay(controller::Role role, Clock::Duration by, Clock::Duration during) {
  std::vector<StreamId> streams;
  for (const MemberProcess* const member : cluster_.members()) {
    if (member->start().id.role == role) {
      std::ranges::set_intersection(world_.network.StreamsOf(*member),
                                    world_.network.StreamsOf(*cluster_.controller()),
                                    std::back_inserter(streams));
    }
  }
  if (streams.empty()) {
    return;
  }
  const StreamId stream = streams[world_.scheduler.rng().Below(streams.size())];
  world_.network.Slow(stream, by);
  world_.scheduler.After(
      during, nullptr, [this, stream] { world_.network.Slow(stream, Clock::Duration(0)); });
}

}  // namespace adamant::simulation
