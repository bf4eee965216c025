#include "services/worker/rpc/job/worker_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::worker {
namespace {

constexpr double kMiB = 1 << 20;

// `spec`: what stands beside the data, indented by two.
double Mebibytes(const std::string& spec, int batch = 32) {
  const job::ParseResult parsed = job::ParseJob(
      "apiVersion: adamant.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: example}\nspec:\n" +
          spec +
          "  data:\n    train:\n      digits: {seed: 1, examples: 140000}\n"
          "    validation:\n      digits: {seed: 2, examples: 1000}\n    batchSize: " +
          std::to_string(batch) + "\n",
      "job.yaml");
  if (parsed.job == nullptr) {
    ADD_FAILURE() << job::Format(parsed.problems.front());
    return 0;
  }
  return static_cast<double>(WorkerMemory(*parsed.job).value()) / kMiB;
}

constexpr char kMnist[] = "  model: {reference: adam-mnist}\n";

// Peaks (VmHWM) as they were measured: docs/bench/memory.md.
TEST(WorkerMemoryTest, IsWithinAFifthOfWhatWasMeasured) {
  constexpr char kSmall[] =
      "  model: {network: {input: [1, 28, 28], classes: 10, layers: [{name: f1, kind: "
      "FullyConnected, outputs: 64}, {name: r1, kind: Relu}, {name: f2, kind: FullyConnected, "
      "outputs: 10}]}}\n  distribution: {workers: 1}\n";
  EXPECT_NEAR(Mebibytes(kMnist), 79, 16);
  EXPECT_NEAR(Mebibytes(kSmall, 65536), 586, 117);
  EXPECT_NEAR(Mebibytes(kSmall, 4096), 98, 20);
}

TEST(WorkerMemoryTest, MoreThreadsTakeMore) {
  const auto threads = [](const char* count) {
    return Mebibytes(kMnist + std::string("  distribution: {threadsPerWorker: ") + count +
                     ", shareEvery: 1}\n");
  };
  EXPECT_LT(threads("2"), threads("4"));
}

TEST(WorkerMemoryTest, AScheduleThatCountsEpochsNeedsNoExamples) {
  EXPECT_EQ(Mebibytes(kMnist + std::string("  optimiser: {kind: Momentum, rate: 0.01, schedule: "
                                           "{kind: Linear, warmUp: {epochs: 0.5}}}\n")),
            Mebibytes(kMnist + std::string("  optimiser: {kind: Momentum, rate: 0.01}\n")));
}

}  // namespace
}  // namespace adamant::worker
