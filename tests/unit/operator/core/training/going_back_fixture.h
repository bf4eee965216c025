#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {

inline constexpr double kChanceLoss = 2.3;

inline JobSettings RecoveringJob() {
  JobSettings settings = SmallJob();
  settings.epochs = 4;
  settings.on_divergence = {.action = OnDivergence::Action::kRecover, .times = 3};
  settings.rate = 0.08;
  settings.chance_loss = kChanceLoss;
  settings.training_examples = 60'000;
  return settings;
}

class GoingBackTest : public testing::Test {
 protected:
  using Actions = Harness::Actions;

  GoingBackTest() {
    job_.Begin();
    job_.JoinAll();
    StoreSnapshot(1);
  }

  Actions StoreSnapshot(std::uint64_t snapshot) {
    Actions all = job_.StoreSnapshot(kServer0, snapshot);
    Harness::Append(all, job_.StoreSnapshot(kServer1, snapshot));
    return all;
  }

  /// The worker has trained so many more examples, each at this loss.
  void Train(std::uint64_t examples, double loss) {
    progress_.trained_examples += examples;
    progress_.loss_sum += loss * static_cast<double>(examples);
    job_.Tell(kWorker0, Heartbeat{.progress = progress_});
  }

  void RunEpoch(std::uint64_t correct) {
    job_.TrainOnly();
    job_.Tell(kData0,
              Evaluated{.epoch = job_.state().epoch,
                        .snapshot = job_.state().row.snapshot,
                        .examples = 1000,
                        .correct = correct,
                        .loss_sum = 250,
                        .most_frequent = 120});
  }

  /// Within the epoch. Returns its number.
  std::uint64_t TakeCheckpoint() {
    job_.Handle(CheckpointRequested{});
    const std::uint64_t snapshot = job_.state().last_snapshot;
    for (const SlotId worker : {kWorker0, kWorker1}) {
      job_.Tell(worker, PushesPaused{.checkpoint = snapshot, .sequence = 7});
    }
    StoreSnapshot(snapshot);
    EXPECT_EQ(job_.state().checkpoint.snapshot, snapshot);
    return snapshot;
  }

  Actions Diverge() {
    progress_ = {};
    return job_.Tell(kWorker0, Failure{.message = "NaN", .fatal = true, .diverged = true});
  }

  void ExitAll() {
    for (const SlotId id : {kData0, kData1, kServer0, kServer1, kWorker0, kWorker1}) {
      job_.Exit(id);
    }
  }

  /// New processes start; the servers have opened their disks.
  void StartAgain() {
    ExitAll();
    const std::string suffix = "-" + std::to_string(++starts_);
    for (const SlotId id : {kData0, kData1, kServer0, kServer1, kWorker0, kWorker1}) {
      job_.Join(id, ToString(id) + suffix);
      job_.Tell(id, Heartbeat{});
    }
    job_.ReportDisk(0);
    job_.ReportDisk(1);
  }

  /// A server's volume is another one: it has nothing of what it is to restore.
  Actions LoseSnapshot(SlotId server) {
    BucketsReady report;
    for (std::uint32_t i = 0; i < job_.state().buckets.size(); ++i) {
      const Configuration& configuration = job_.state().buckets[i];
      if (configuration.primary == job_.ServerIdOf(server.slot)) {
        report.buckets.push_back({.bucket = i,
                                  .configuration_version = configuration.version,
                                  .lost = true,
                                  .detail = "not in the snapshot"});
      }
    }
    return job_.Tell(server, report);
  }

  Actions Serve() {
    Actions all = job_.Serve(0);
    Harness::Append(all, job_.Serve(1));
    return all;
  }

  [[nodiscard]] const Recovery& recovery() const { return job_.state().recovery; }
  [[nodiscard]] std::uint64_t healthy() const { return recovery().healthy.checkpoint.snapshot; }

  Harness job_{RecoveringJob()};
  WorkerProgress progress_;
  int starts_ = 0;
};

/// What is told of jobs that go back.
inline std::vector<std::string> WentBack(const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  for (const Note& note : Pick<Note>(actions)) {
    if (note.kind == Note::Kind::kWentBack) {
      texts.push_back(note.text);
    }
  }
  return texts;
}

}  // namespace adamant::controller
