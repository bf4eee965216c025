#include "operator/cli/warnings/transformations_warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/adamant/v1/job.pb.h"

namespace adamant::cli {
namespace {

using testing::StartsWith;

std::string WarningOf(double mean, double deviation) {
  v1::TrainingJob job;
  v1::Normalise& normalise =
      *job.mutable_spec()->mutable_data()->mutable_transformations()->mutable_normalise();
  normalise.set_mean(mean);
  normalise.set_deviation(deviation);
  return NormaliseWarning(job);
}

TEST(NormaliseWarningTest, UsualOnesPass) {
  EXPECT_EQ(NormaliseWarning(v1::TrainingJob()), "");
  EXPECT_EQ(WarningOf(0.1307, 0.3081), "");
  EXPECT_EQ(WarningOf(0.5, 0.5), "");
  EXPECT_EQ(WarningOf(0, 0.02), "");
}

TEST(NormaliseWarningTest, NumbersOfBytesAreWarnedOf) {
  EXPECT_THAT(WarningOf(33.3285, 78.5655),
              StartsWith("spec.data.transformations.normalise: pixels run from 0 to 1 before it, "
                         "and from -0.4242 to -0.4115 after it"));
  EXPECT_NE(WarningOf(1000, 0.000001), "");
  EXPECT_THAT(WarningOf(0, 0.001), testing::HasSubstr("and from 0 to 1000 after it"));
}

TEST(ShiftWarningTest, ShiftsOutOfSightAreWarnedOf) {
  v1::TrainingJob job;
  job.mutable_spec()->mutable_model()->set_reference("adam-mnist");
  v1::Transformations& change = *job.mutable_spec()->mutable_data()->mutable_transformations();
  EXPECT_EQ(ShiftWarning(job), "");
  change.set_translate(13);
  EXPECT_EQ(ShiftWarning(job), "");
  change.set_translate(14);
  EXPECT_EQ(ShiftWarning(job),
            "spec.data.transformations.translate: with 14 images of 28 pixels are shifted out of "
            "sight");
}

}  // namespace
}  // namespace adamant::cli
