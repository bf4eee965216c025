#include "services/common/job/yaml/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kManifest[] = R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example, labels: {team: a}}
spec:
  model: {reference: adam-mnist}
  data:
    train: {digits: {seed: 1, examples: 1000}}
    validation: {digits: {seed: 2, examples: 100}}
  optimiser: {rate: 0.01, layers: [{layer: fc1, rate: 0.02}]}
  pods: {worker: {spec: {nodeName: a}}}
)";

/// The lines of what changes in the manifest when these texts of it are replaced.
std::vector<std::string> Changes(
    const std::vector<std::pair<std::string, std::string>>& replacements) {
  std::string text = kManifest;
  for (const auto& [before, after] : replacements) {
    text.replace(text.find(before), before.size(), after);
  }
  const ParseResult before = ParseJob(kManifest, "job.yaml");
  const ParseResult after = ParseJob(text, "job.yaml");
  EXPECT_NE(before.job, nullptr);
  EXPECT_NE(after.job, nullptr) << Format(after.problems.front());
  std::vector<std::string> lines;
  if (before.job != nullptr && after.job != nullptr) {
    for (const FieldChange& change : ChangesBetween(*before.job, *after.job)) {
      lines.push_back(Format(change));
    }
  }
  return lines;
}

TEST(ChangesTest, EqualManifestsHaveNone) { EXPECT_THAT(Changes({}), IsEmpty()); }

TEST(ChangesTest, ADefaultThatIsWrittenOutIsNone) {
  EXPECT_THAT(Changes({{"rate: 0.01", "momentum: 0.9, rate: 0.01"}}), IsEmpty());
}

TEST(ChangesTest, ValuesAreNamedAsManifestsWriteThem) {
  EXPECT_THAT(
      Changes({{"name: example", "name: other"},
               {"rate: 0.01", "kind: Sgd, rate: 0.5"},
               {"  pods:", "  runPolicy: {activeDeadline: 1h, targetAccuracy: 0.9}\n  pods:"}}),
      ElementsAre("metadata.name: example -> other",
                  "spec.optimiser.kind: Momentum -> Sgd",
                  "spec.optimiser.rate: 0.01 -> 0.5",
                  "spec.optimiser.momentum: 0.9 -> absent",
                  "spec.runPolicy.targetAccuracy: absent -> 0.9",
                  "spec.runPolicy.activeDeadline: absent -> 1h"));
}

TEST(ChangesTest, ListsMapsAndSpecsOfPodsCountAsOne) {
  EXPECT_THAT(
      Changes(
          {{"team: a", "team: b"}, {"rate: 0.02", "rate: 0.03"}, {"nodeName: a", "nodeName: b"}}),
      ElementsAre("metadata.labels: changed",
                  "spec.optimiser.layers: changed",
                  "spec.pods.worker.spec: changed"));
}

TEST(ChangesTest, AnotherSourceChangesTheFieldsOfBoth) {
  EXPECT_THAT(Changes({{"validation: {digits: {seed: 2, examples: 100}}",
                        "validation: {download: {images: {url: 'http://h/i', sha256: '" +
                            std::string(64, 'a') + "'}, labels: {url: 'http://h/l', sha256: '" +
                            std::string(64, 'b') + "'}}}"}}),
              testing::Contains("spec.data.validation.digits.seed: 2 -> absent"));
}

}  // namespace
}  // namespace adamant::job
