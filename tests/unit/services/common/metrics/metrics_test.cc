#include "services/common/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace adamant::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MetricsTest, TextHasNamesHelpLabelsAndValues) {
  Registry registry;
  registry.AddCounter("adamant_test_pushes_total", "Pushes.", {{"outcome", "applied"}})
      .Increment(3);
  registry.AddGauge("adamant_test_dirty_bytes", "Changed.").Set(12);
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("# HELP adamant_test_pushes_total Pushes."));
  EXPECT_THAT(text, HasSubstr("# TYPE adamant_test_pushes_total counter"));
  EXPECT_THAT(text, HasSubstr("adamant_test_pushes_total{outcome=\"applied\"} 3"));
  EXPECT_THAT(text, HasSubstr("adamant_test_dirty_bytes 12"));
}

TEST(MetricsTest, SameNameAndLabelsAreTheSameMetric) {
  Registry registry;
  const Gauge first = registry.AddGauge("adamant_test_level", "Level.", {{"kind", "a"}});
  const Gauge second = registry.AddGauge("adamant_test_level", "Level.", {{"kind", "a"}});
  const Gauge other = registry.AddGauge("adamant_test_level", "Level.", {{"kind", "b"}});
  first.Set(1);
  second.Add(1.5);
  other.Set(7);
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_level{kind=\"a\"} 2.5"));
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_level{kind=\"b\"} 7"));
}

TEST(MetricsTest, HistogramCountsByUpperBound) {
  Registry registry;
  const Histogram sizes = registry.AddHistogram("adamant_test_bytes", "Sizes.", {1, 10});
  for (const double value : {0.5, 1.0, 5.0, 50.0}) {
    sizes.Observe(value);
  }
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("adamant_test_bytes_bucket{le=\"1\"} 2"));
  EXPECT_THAT(text, HasSubstr("adamant_test_bytes_bucket{le=\"10\"} 3"));
  EXPECT_THAT(text, HasSubstr("adamant_test_bytes_bucket{le=\"+Inf\"} 4"));
  EXPECT_THAT(text, HasSubstr("adamant_test_bytes_sum 56.5"));
}

TEST(MetricsTest, WhatIsNotFiniteIsNotCounted) {
  Registry registry;
  const Counter counter = registry.AddCounter("adamant_test_total", "All.");
  const Gauge gauge = registry.AddGauge("adamant_test_level", "Level.");
  const Histogram sizes = registry.AddHistogram("adamant_test_bytes", "Sizes.", {1});
  for (const double value : {2.0, std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    counter.Increment(value);
    gauge.Set(value);
    gauge.Add(value);
    sizes.Observe(value);
  }
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("adamant_test_total 2\n"));
  EXPECT_THAT(text, HasSubstr("adamant_test_level 4\n"));
  EXPECT_THAT(text, HasSubstr("adamant_test_bytes_count 1\n"));
  EXPECT_THAT(text, HasSubstr("adamant_test_bytes_sum 2\n"));
}

TEST(MetricsTest, ConcurrentIncrementsAreAllCounted) {
  Registry registry;
  const Counter counter = registry.AddCounter("adamant_test_total", "All.");
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        counter.Increment();
      }
    });
  }
  threads.clear();
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_total 40000"));
}

TEST(MetricsTest, ExponentialBoundsGrowByTheFactor) {
  EXPECT_THAT(ExponentialBounds(1, 2, 4), ElementsAre(1, 2, 4, 8));
}

}  // namespace
}  // namespace adamant::metrics
