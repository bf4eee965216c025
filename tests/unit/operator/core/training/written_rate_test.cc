#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/operator/core/training/divergence_fixture.h"

// Rates that are written anew after training has diverged.
namespace adamant::controller {
namespace {

class WrittenRateTest : public DivergenceTest {
 protected:
  WrittenRateTest() {
    settings_.rate = 0.08;
    settings_.layer_rates = {{"conv1", 0.04}};
    job_ = Harness(settings_);
    Open();
  }

  /// The job fails as it diverges twice, and goes on with these rates; returns what workers get.
  Welcome FailAndResume(double rate, const std::map<std::string, double>& layer_rates) {
    Diverge();
    ExitAll();
    job_.JoinAll("-again");
    Diverge();
    EXPECT_EQ(job_.state().phase, Phase::kFailed);
    return Resume(rate, layer_rates);
  }

  Welcome Resume(double rate, const std::map<std::string, double>& layer_rates) {
    settings_.rate = rate;
    settings_.layer_rates = layer_rates;
    job_.Change(settings_);
    job_.RestartController({.others = false});
    const auto welcome = Sent<Welcome>(job_.JoinAll("-third"));
    return welcome.empty() ? Welcome() : welcome.front().second;
  }

  JobSettings settings_ = DivergingJob(OnDivergence::Action::kRecover, 1);
};

TEST_F(WrittenRateTest, ARateThatIsWrittenAnewIsTakenAsItIs) {
  const Welcome welcome = FailAndResume(0.02, {{"conv1", 0.04}});
  EXPECT_EQ(welcome.rate_factor, 1);
  EXPECT_EQ(welcome.layer_factors.at("conv1"), 0.25) << "it is as it was";
  EXPECT_EQ(job_.state().recovery.times, 0u);
}

TEST_F(WrittenRateTest, SoIsThatOfALayer) {
  const Welcome welcome = FailAndResume(0.08, {{"conv1", 0.01}, {"fc1", 0.03}});
  EXPECT_EQ(welcome.rate_factor, 0.25);
  EXPECT_EQ(welcome.layer_factors.at("conv1"), 1);
  EXPECT_EQ(welcome.layer_factors.at("fc1"), 1);
}

TEST_F(WrittenRateTest, AControllerThatWasKilledCountsAnewTooOnceTheRateIsAnotherOne) {
  Diverge();
  ASSERT_EQ(recovery().times, 1u);
  EXPECT_EQ(Resume(0.02, {}).rate_factor, 1);
  EXPECT_EQ(recovery().times, 0u);
  EXPECT_TRUE(recovery().layer_rates.empty());
}

TEST_F(WrittenRateTest, ARateThatIsWrittenAnewIsHalvedFromThereOn) {
  FailAndResume(0.02, {{"conv1", 0.04}});
  Diverge();
  EXPECT_EQ(recovery().rate_factor, 0.5);
  EXPECT_EQ(recovery().layer_rates[0].factor, 0.125);
}

}  // namespace
}  // namespace adamant::controller
