#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {

/// A job that does this when it diverges.
inline JobSettings DivergingJob(OnDivergence::Action action, std::uint32_t times = 3) {
  JobSettings settings = SmallJob();
  settings.epochs = 4;
  settings.on_divergence = {.action = action, .times = times};
  settings.rate = 0.08;
  settings.restart_limit = 0;  // going back costs nothing of it
  return settings;
}

class DivergenceTest : public testing::Test {
 protected:
  using Actions = Harness::Actions;

  explicit DivergenceTest(OnDivergence::Action action = OnDivergence::Action::kRecover,
                          std::uint32_t times = 3)
      : job_(DivergingJob(action, times)) {}

  Actions StoreFirstWeights() {
    Actions all = job_.StoreSnapshot(kServer0, 1);
    Harness::Append(all, job_.StoreSnapshot(kServer1, 1));
    return all;
  }

  Actions Open() {
    job_.Begin();
    job_.JoinAll();
    return StoreFirstWeights();
  }

  Actions Diverge() {
    return job_.Tell(kWorker0,
                     Failure{.message = "training diverged: NaN", .fatal = true, .diverged = true});
  }

  Actions ExitAll() {
    Actions all;
    for (const SlotId id : {kData0, kData1, kServer0, kServer1, kWorker0, kWorker1}) {
      Harness::Append(all, job_.Exit(id));
    }
    return all;
  }

  Actions EvaluateAs(std::uint64_t correct) {
    return job_.Tell(kData0,
                     Evaluated{.epoch = job_.state().epoch,
                               .snapshot = job_.state().row.snapshot,
                               .examples = 1000,
                               .correct = correct,
                               .loss_sum = 250,
                               .most_frequent = 120});
  }

  Actions RunEpoch(std::uint64_t correct) {
    job_.TrainOnly();
    return EvaluateAs(correct);
  }

  [[nodiscard]] const Recovery& recovery() const { return job_.state().recovery; }

  Harness job_;
};

}  // namespace adamant::controller
