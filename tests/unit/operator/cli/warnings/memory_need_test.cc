#include "operator/cli/warnings/memory_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::cli {
namespace {

using testing::HasSubstr;

constexpr double kMiB = 1 << 20;

std::vector<MemoryNeed> Needs(const std::string& model,
                              const std::string& distribution,
                              int examples,
                              int batch = 32) {
  const job::ParseResult parsed = job::ParseJob(
      "apiVersion: adamant.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: example}\nspec:\n"
      "  model: " +
          model +
          "\n  data:\n    train:\n      digits: {seed: 1, examples: " + std::to_string(examples) +
          "}\n    validation:\n      digits: {seed: 2, examples: 1000}\n    batchSize: " +
          std::to_string(batch) + "\n  distribution: " + distribution + "\n",
      "job.yaml");
  if (parsed.job == nullptr) {
    ADD_FAILURE() << job::Format(parsed.problems.front());
    return std::vector<MemoryNeed>(4);
  }
  return MemoryNeeds(*parsed.job).value();
}

void ExpectNear(const MemoryNeed& need, const std::string& role, double mebibytes) {
  EXPECT_EQ(need.role, role);
  EXPECT_NEAR(static_cast<double>(need.bytes) / kMiB, mebibytes, 0.2 * mebibytes) << role;
}

constexpr char kWide[] =
    "{network: {input: [1, 28, 28], classes: 10, layers: [{name: a, kind: FullyConnected, outputs: "
    "4000}, {name: b, kind: Relu}, {name: c, kind: FullyConnected, outputs: 4000}, {name: d, kind: "
    "Relu}, {name: out, kind: FullyConnected, outputs: 10}]}}";

// Peaks (VmHWM) as they were measured: docs/bench/memory.md.
TEST(MemoryNeedTest, IsWithinAFifthOfWhatWasMeasured) {
  const auto mnist = Needs("{reference: adam-mnist}", "{workers: 2}", 60000);
  ExpectNear(mnist[0], "worker", 79);
  ExpectNear(mnist[1], "parameter server", 73);
  ExpectNear(mnist[2], "data server", 113);
  ExpectNear(mnist[3], "controller", 60);
  const auto wide = Needs(kWide, "{workers: 2}", 3000);
  ExpectNear(wide[0], "worker", 1004);
  ExpectNear(wide[1], "parameter server", 340);
  ExpectNear(wide[2], "data server", 28);
  ExpectNear(wide[3], "controller", 409);
  const auto threads = Needs(
      kWide, "{workers: 1, threadsPerWorker: 2, parameterServers: {count: 3, copies: 1}}", 3000);
  ExpectNear(threads[0], "worker", 1557);
  ExpectNear(threads[1], "parameter server", 142);
}

TEST(MemoryNeedTest, LargeBatchesCountAsOftenAsTheyAreKept) {
  constexpr char kSmall[] =
      "{network: {input: [1, 28, 28], classes: 10, layers: [{name: f1, kind: FullyConnected, "
      "outputs: 64}, {name: r1, kind: Relu}, {name: f2, kind: FullyConnected, outputs: 10}]}}";
  ExpectNear(Needs(kSmall, "{workers: 1}", 140000, 65536)[0], "worker", 586);
  ExpectNear(Needs(kSmall, "{workers: 1}", 140000, 4096)[0], "worker", 98);
}

TEST(MemoryNeedTest, TheWarningHasFiguresByRole) {
  const std::vector<MemoryNeed> needs = {{"worker", 2, std::uint64_t{3} << 30},
                                         {"controller", 1, std::uint64_t{60} << 20}};
  EXPECT_EQ(MemoryLine(needs, std::uint64_t{8} << 30),
            "memory: worker 2 x 3.0 GiB, controller 60 MiB: about 6.1 GiB in all, of 8.0 GiB that "
            "are free here\n");
  EXPECT_THAT(MemoryLine(needs, std::nullopt), testing::EndsWith("about 6.1 GiB in all\n"));
  EXPECT_EQ(MemoryWarning(needs, std::uint64_t{8} << 30), "");
  EXPECT_EQ(MemoryWarning(needs, std::nullopt), "");
  EXPECT_THAT(MemoryWarning(needs, std::uint64_t{512} << 20),
              HasSubstr("needs about 6.1 GiB of memory, and 512 MiB are free here: worker 2 x 3.0 "
                        "GiB, controller 60 MiB; processes may be killed."));
}

}  // namespace
}  // namespace adamant::cli
