#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "services/data_server/core/batch_scheduler.h"
#include "tests/unit/services/data_server/core/scheduler_harness.h"

namespace adamant::data_server {

inline constexpr WorkerId kA{.slot = 0, .incarnation = 1};
inline constexpr WorkerId kB{.slot = 1, .incarnation = 1};

/// 10 batches, the last one of 5 examples.
inline BatchSchedulerOptions Options() {
  return {.slot = 0,
          .batch_size = 10,
          .train_examples = 95,
          .validation_examples = 25,
          .most_frequent = 4};
}

inline WorkView View(std::vector<WorkerId> workers, std::vector<std::uint32_t> owners = {0}) {
  return {.workers = std::move(workers), .part_owner = std::move(owners)};
}

/// A scheduler with worker A in an open epoch 1.
class BatchSchedulerTest : public testing::Test {
 public:
  void Begin(std::uint32_t window) {
    h.Send(View({kA, kB}));
    h.Send(Hello{.worker = kA, .window = window});
    h.Send(OpenEpoch{.epoch = 1});
  }

  SchedulerHarness h{Options()};
};

}  // namespace adamant::data_server
