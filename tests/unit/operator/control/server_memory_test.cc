#include "operator/control/server_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::control {
namespace {

constexpr double kMiB = 1 << 20;

ServerMemory MemoryOf(const std::string& distribution, const ExampleCounts& examples) {
  const job::ParseResult parsed = job::ParseJob(
      "apiVersion: adamant.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: example}\nspec:\n"
      "  model: {reference: adam-mnist}\n"
      "  data:\n    train:\n      digits: {seed: 1, examples: 60000}\n"
      "    validation:\n      digits: {seed: 2, examples: 1000}\n"
      "  distribution: " +
          distribution + "\n",
      "job.yaml");
  if (parsed.job == nullptr) {
    ADD_FAILURE() << job::Format(parsed.problems.front());
    return {};
  }
  return ServerMemoryOf(*parsed.job, examples).value();
}

void ExpectNear(std::uint64_t bytes, double mebibytes) {
  EXPECT_NEAR(static_cast<double>(bytes) / kMiB, mebibytes, 0.2 * mebibytes);
}

// Peaks (VmHWM) as they were measured: docs/bench/memory.md.
TEST(ServerMemoryTest, IsWithinAFifthOfWhatWasMeasured) {
  const ServerMemory mnist = MemoryOf("{workers: 2}", {.train = 60000, .validation = 1000});
  ExpectNear(mnist.parameter_server, 73);
  ExpectNear(mnist.data_server, 113);
  ExpectNear(mnist.controller, 60);
}

TEST(ServerMemoryTest, DataServersShareTheTrainingExamplesAndEachHasAllForValidation) {
  const auto data_server = [](int servers, const ExampleCounts& examples) {
    return MemoryOf("{dataServers: " + std::to_string(servers) + "}", examples).data_server;
  };
  EXPECT_EQ(data_server(2, {.train = 60000, .validation = 1000}),
            data_server(1, {.train = 30000, .validation = 1000}));
  EXPECT_GT(data_server(2, {.train = 60000, .validation = 2000}),
            data_server(2, {.train = 60000, .validation = 1000}));
}

TEST(ServerMemoryTest, ExamplesThatNobodyKnowsCountAsNone) {
  ExpectNear(MemoryOf("{workers: 2}", {}).data_server, 24);
}

TEST(ServerMemoryTest, MoreCopiesTakeMore) {
  const auto server = [](int copies) {
    const std::string text = std::to_string(copies);
    return MemoryOf("{parameterServers: {count: 3, copies: " + text + "}}", {}).parameter_server;
  };
  EXPECT_LT(server(1), server(2));
  EXPECT_LT(server(2), server(3));
}

}  // namespace
}  // namespace adamant::control
