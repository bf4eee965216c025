// The update scheme (docs/design/0007-updates.md) against a plain sequential program.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "services/common/kernels/hogwild.h"
#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

/// The scheme once more, as one would write it without threads, messages or blocks: every thread's
/// step in the order given, pushes applied when they are handed over, fetches as the note says.
class Sequential {
 public:
  Sequential(const RigOptions& options, const std::vector<float>& weights)
      : options_(options),
        graph_(TinyGraph()),
        layout_(graph_.parameters, 4),
        plan_(PlanOf(options, graph_, layout_)),
        server_(weights),
        server_state_(weights.size()),
        local_(weights),
        threads_(options.threads) {
    for (Thread& thread : threads_) {
      thread.context = *graph::Context::Create(graph_, 4, graph::BackendKind::kReference, true);
      thread.state.resize(weights.size());
      thread.pending.resize(weights.size());
      thread.sum.resize(weights.size());
    }
  }

  void Step(std::size_t index, std::uint32_t batch_index) {
    Thread& thread = threads_[index];
    std::vector<float> gradient(local_.size());
    const std::uint64_t progress = TrainOn(thread, batch_index, gradient);
    if (options_.location == OptimiserLocation::kWorker) {
      for (const TensorPlan& tensor : plan_.tensors) {
        const RuleStep rule = tensor.optimiser.At(progress);
        WeightChange(rule,
                     Part(tensor, gradient),
                     Part(tensor, local_),
                     Part(tensor, thread.state).first(StatePerWeight(rule.kind) * tensor.size),
                     Part(tensor, gradient));
      }
    }
    Accrue(gradient, thread.pending_steps++ == 0, thread.pending);
    thread.progress = progress;
    if (++thread.steps % options_.share_every == 0) {
      Share(thread);
    }
    if (thread.steps == options_.push_every) {
      HandOver(thread);
    }
    const std::uint64_t every = options_.fetch_every * options_.threads;
    if (++steps_ % every == 0) {
      MeetFetchPoint();
    }
  }

  void Flush() {
    for (Thread& thread : threads_) {
      HandOver(thread);
    }
  }

  [[nodiscard]] const std::vector<float>& server() const { return server_; }
  [[nodiscard]] const std::vector<float>& local() const { return local_; }

 private:
  struct Sum {
    std::vector<float> values;
    std::uint64_t progress = 0;
  };
  struct Thread {
    std::unique_ptr<graph::Context> context;
    std::vector<float> state;
    std::vector<float> pending;
    std::uint64_t pending_steps = 0;
    std::vector<float> sum;
    bool has_sum = false;
    std::vector<float> before;  // instead of a sum: the weights before it, where one thread steps
    bool keeps_before = false;
    std::uint64_t steps = 0;
    std::uint64_t progress = 0;
  };

  static std::span<float> Part(const TensorPlan& tensor, std::vector<float>& values) {
    return std::span(values).subspan(tensor.offset, tensor.size);
  }

  static void Accrue(const std::vector<float>& values, bool first, std::vector<float>& sum) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum[i] = first ? values[i] : sum[i] + values[i];
    }
  }

  void Share(Thread& thread) {
    if (thread.pending_steps == 0) {
      return;
    }
    if (!thread.has_sum && !thread.keeps_before && KeepsBefore()) {
      thread.before = local_;
      thread.keeps_before = true;
    }
    if (!thread.keeps_before) {
      Accrue(thread.pending, !thread.has_sum, thread.sum);
      thread.has_sum = true;
    }
    AddLocal({thread.pending, thread.progress});
    thread.pending_steps = 0;
  }

  [[nodiscard]] bool KeepsBefore() const {
    return options_.threads == 1 && options_.location == OptimiserLocation::kWorker &&
           options_.share_every == 1 && options_.push_every > 1;
  }

  void TakeDifference(Thread& thread) {
    if (thread.keeps_before) {
      for (std::size_t i = 0; i < local_.size(); ++i) {
        thread.sum[i] = local_[i] - thread.before[i];
      }
      thread.has_sum = true;
      thread.keeps_before = false;
    }
  }

  std::uint64_t TrainOn(Thread& thread, std::uint32_t index, std::vector<float>& gradient) {
    Batch batch;
    batch.pixels.resize(24);
    batch.labels.resize(4);
    FillBatch(index, batch);
    for (std::size_t i = 0; i < std::size_t{batch.examples} * 6; ++i) {
      thread.context->input()[i] = (static_cast<float>(batch.pixels[i]) - 128.0f) / 64.0f;
    }
    std::copy_n(batch.labels.begin(), batch.examples, thread.context->labels().begin());
    thread.context->Train(batch.examples, local_, gradient, 0);
    return batch.job_examples;
  }

  void HandOver(Thread& thread) {
    if (thread.steps == 0) {
      return;
    }
    Share(thread);
    TakeDifference(thread);
    for (const TensorPlan& tensor : plan_.tensors) {
      if (options_.location == OptimiserLocation::kWorker) {
        Add(Part(tensor, thread.sum), Part(tensor, server_));
      } else {
        const RuleStep rule = tensor.optimiser.At(thread.progress);
        ApplyGradient(rule,
                      Part(tensor, thread.sum),
                      Part(tensor, server_state_).first(StatePerWeight(rule.kind) * tensor.size),
                      Part(tensor, server_));
      }
    }
    since_fetch_.push_back({thread.sum, thread.progress});
    thread.has_sum = false;
    thread.steps = 0;
  }

  void MeetFetchPoint() {
    if (!fetched_.empty()) {
      for (Thread& thread : threads_) {
        TakeDifference(thread);
      }
      local_ = fetched_;
      for (const Sum& sum : since_fetch_) {
        AddLocal(sum);
      }
      for (Thread& thread : threads_) {
        if (thread.has_sum) {
          AddLocal({thread.sum, thread.progress});
        }
      }
    }
    fetched_ = server_;
    since_fetch_.clear();
  }

  void AddLocal(const Sum& sum) {
    for (const TensorPlan& tensor : plan_.tensors) {
      const std::span<const float> change =
          std::span(sum.values).subspan(tensor.offset, tensor.size);
      const std::span<float> local = std::span(local_).subspan(tensor.offset, tensor.size);
      if (options_.location == OptimiserLocation::kWorker) {
        Add(change, local);
      } else {
        const auto rate = static_cast<float>(tensor.optimiser.RateAt(sum.progress));
        kernels::HogwildAxpy(local, -rate, change);
      }
    }
  }

  const RigOptions options_;
  const model::Graph graph_;
  const ShardLayout layout_;
  const UpdatePlan plan_;
  std::vector<float> server_;
  std::vector<float> server_state_;
  std::vector<float> local_;
  std::vector<float> fetched_;
  std::vector<Sum> since_fetch_;
  std::vector<Thread> threads_;
  std::uint64_t steps_ = 0;
};

float LargestDifference(std::span<const float> a, std::span<const float> b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

/// Trains `steps` batches under a schedule drawn from `seed`: who advances, and when messages and
/// replies move. Returns which thread took each step.
std::vector<std::size_t> Train(Rig& rig, std::uint64_t steps, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::size_t> order;
  while (rig.learner.steps() < steps) {
    switch (rng.Below(5)) {
      case 0:
        EXPECT_TRUE(rig.Pump().ok());
        break;
      case 1:
        rig.Serve(static_cast<ServerSlot>(rng.Below(2)));
        break;
      case 2:
        rig.Reply();
        break;
      default: {
        if (rig.next_batch < steps) {
          rig.PutBatch();
        }
        const std::size_t thread = rng.Below(rig.threads.size());
        const std::uint64_t before = rig.learner.steps();
        rig.threads[thread]->Advance();
        if (rig.learner.steps() > before) {
          order.push_back(thread);
        }
        break;
      }
    }
  }
  return order;
}

void Flush(Rig& rig) {
  rig.worker.Flush(0);
  rig.Settle();
  EXPECT_EQ(rig.synchroniser.TakeFlushed(), 0u);
}

struct Case {
  const char* name;
  RigOptions options;
};

class UpdatesTest : public testing::TestWithParam<Case> {};

TEST_P(UpdatesTest, OneThreadGivesTheBitsOfTheSequentialProgramWhateverTheSchedule) {
  RigOptions options = GetParam().options;
  options.threads = 1;
  constexpr std::uint32_t kSteps = 43;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rig rig(options);
    rig.Begin();
    ASSERT_EQ(rig.LocalWeights(), rig.servers.weights());
    Sequential sequential(options, rig.servers.weights());
    Train(rig, kSteps, seed);
    rig.Settle();
    for (std::uint32_t i = 0; i < kSteps; ++i) {
      sequential.Step(0, i);
    }
    EXPECT_EQ(rig.LocalWeights(), sequential.local());
    Flush(rig);
    sequential.Flush();
    EXPECT_EQ(rig.servers.weights(), sequential.server());
    EXPECT_EQ(rig.acknowledged.size(), kSteps);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schemes,
    UpdatesTest,
    testing::Values(
        Case{"MomentumOnWorker", {}},
        Case{"SgdOnWorker", {.kind = OptimiserKind::kSgd}},
        Case{"FetchOftener", {.fetch_every = 1, .push_every = 3}},
        Case{"PushOftener", {.fetch_every = 5, .push_every = 1}},
        Case{"OddIntervals", {.fetch_every = 3, .push_every = 7}},
        Case{"ShareInPairs", {.fetch_every = 1, .share_every = 2}},
        Case{"ShareUnevenly", {.fetch_every = 5, .push_every = 7, .share_every = 3}},
        Case{"ShareOnServer",
             {.fetch_every = 3,
              .push_every = 5,
              .location = OptimiserLocation::kServer,
              .rate = 0.02,
              .share_every = 2}},
        Case{"SgdOnServer",
             {.kind = OptimiserKind::kSgd, .location = OptimiserLocation::kServer, .rate = 0.02}},
        Case{"AdagradOnServer",
             {.fetch_every = 2,
              .kind = OptimiserKind::kAdagrad,
              .location = OptimiserLocation::kServer,
              .rate = 0.02}}),
    [](const auto& scheme) { return scheme.param.name; });

// With one worker the local weights are the servers' plus what accrues, up to rounding, whatever a
// fetch includes. So the sequential program needs only the order of the steps.
TEST(UpdatesOfThreadsTest, WhatSeveralThreadsPushIsWhatTheyComputed) {
  for (const bool often : {false, true}) {
    RigOptions options = {.threads = 3,
                          .fetch_every = often ? 1u : 3u,
                          .push_every = often ? 2u : 4u,
                          .share_every = often ? 1u : 3u};
    options.rate = 0.02;
    constexpr std::uint64_t kSteps = 60;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Rig rig(options);
      rig.Begin();
      Sequential sequential(options, rig.servers.weights());
      const std::vector<std::size_t> order = Train(rig, kSteps, seed);
      for (std::uint32_t i = 0; i < kSteps; ++i) {
        sequential.Step(order[i], i);
      }
      Flush(rig);
      sequential.Flush();
      EXPECT_LT(LargestDifference(rig.servers.weights(), sequential.server()), 1e-4f);
      EXPECT_LT(LargestDifference(rig.LocalWeights(), rig.servers.weights()), 1e-4f);
      EXPECT_EQ(rig.acknowledged.size(), kSteps);
    }
  }
}

TEST(UpdatesOfThreadsTest, TheNextFetchRepairsWhatRacesLoseInTheLocalCopy) {
  RigOptions options = {.threads = 2};
  options.rate = 0.02;
  Rig rig(options);
  rig.Begin();
  Train(rig, 24, 1);
  for (float& weight : rig.learner.weights()) {
    weight += 0.01f;
  }
  Train(rig, 48, 2);
  Flush(rig);
  EXPECT_LT(LargestDifference(rig.LocalWeights(), rig.servers.weights()), 1e-4f);
}

TEST(UpdatesOfThreadsTest, AFetchBringsInWhatOthersPushed) {
  Rig rig({.fetch_every = 2, .push_every = 2});
  rig.Begin();
  Train(rig, 2, 1);
  rig.Settle();
  for (float& weight : rig.servers.weights()) {
    weight += 1;  // by another worker, after the fetch at step 2 was answered
  }
  Train(rig, 4, 2);
  rig.Settle();
  EXPECT_GT(LargestDifference(rig.LocalWeights(), rig.servers.weights()), 0.9f);
  Train(rig, 6, 3);
  rig.Settle();
  EXPECT_LT(LargestDifference(rig.LocalWeights(), rig.servers.weights()), 1e-4f);
}

// How far the first step moves the weights when the correction becomes `rate` while the thread
// waits for its first batch, as others do while one worker trains alone first.
std::vector<float> FirstStepAt(float rate) {
  RigOptions options;
  options.kind = OptimiserKind::kSgd;
  Rig rig(options);
  rig.Begin();
  const std::vector<float> before = rig.LocalWeights();
  rig.learner.SetGuidance({.correction = {.rate = rate}, .exchange_every = 4});
  EXPECT_TRUE(rig.PutBatch());
  rig.Settle();
  std::vector<float> moved = rig.LocalWeights();
  std::ranges::transform(moved, before, moved.begin(), std::minus());
  return moved;
}

TEST(UpdatesOfThreadsTest, WhatWaitedLongForItsFirstBatchIsCorrectedAsOfNow) {
  const std::vector<float> whole = FirstStepAt(1);
  std::vector<float> quarter = FirstStepAt(0.25f);
  EXPECT_GT(*std::ranges::max_element(whole), 1e-3f);
  for (float& moved : quarter) {
    moved *= 4;
  }
  EXPECT_LT(LargestDifference(quarter, whole), 1e-5f);
}

TEST(UpdatesOfThreadsTest, ServersAreToldTheMemoryOfMomentumOnlyWhereTheyHaveIt) {
  const Correction correction{.rate = 0.5f, .memory = 0.2f};
  for (const auto location : {OptimiserLocation::kWorker, OptimiserLocation::kServer}) {
    RigOptions options = {.kind = OptimiserKind::kMomentum, .location = location};
    Rig rig(options);
    rig.Begin();
    rig.learner.SetGuidance({.correction = correction, .exchange_every = 4});
    Train(rig, 8, 4);
    Flush(rig);
    EXPECT_EQ(rig.servers.correction().rate, correction.rate);
    EXPECT_EQ(rig.servers.correction().memory,
              location == OptimiserLocation::kServer ? correction.memory : 1);
  }
}

TEST(ProtocolsTest, ActivationsGiveTheResultOfGradientsWithinRounding) {
  for (const std::size_t threads : {1, 3}) {
    for (const OptimiserKind kind :
         {OptimiserKind::kSgd, OptimiserKind::kMomentum, OptimiserKind::kAdagrad}) {
      RigOptions options = {
          .threads = threads, .kind = kind, .location = OptimiserLocation::kServer};
      options.rate = 0.02;
      Rig gradients(options);
      options.protocol = UpdateProtocol::kActivations;
      Rig activations(options);
      ASSERT_TRUE(activations.plan.tensors[0].activations);
      ASSERT_FALSE(activations.plan.tensors[1].activations);
      gradients.Begin();
      activations.Begin();
      Train(gradients, 40, 5);
      Train(activations, 40, 5);
      Flush(gradients);
      Flush(activations);
      EXPECT_LT(LargestDifference(gradients.servers.weights(), activations.servers.weights()),
                1e-4f);
    }
  }
}

}  // namespace
}  // namespace adamant::worker
