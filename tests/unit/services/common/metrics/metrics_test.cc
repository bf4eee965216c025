#include "services/common/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace adamant::metrics {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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

TEST(MetricsTest, WhatIsRemovedIsNotThereAndMayComeBack) {
  Registry registry;
  const Gauge gauge = registry.AddGauge("adamant_test_level", "Level.", {{"kind", "a"}});
  registry.AddGauge("adamant_test_level", "Level.", {{"kind", "b"}}).Set(7);
  const Counter counter = registry.AddCounter("adamant_test_total", "All.", {{"kind", "a"}});
  gauge.Set(3);
  counter.Increment(5);
  registry.Remove(gauge);
  registry.Remove(counter);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("{kind=\"a\"}")));
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_level{kind=\"b\"} 7"));
  registry.AddCounter("adamant_test_total", "All.", {{"kind", "a"}}).Increment();
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_total{kind=\"a\"} 1"));
}

TEST(MetricsTest, AllOfANameAreRemovedAtOnce) {
  Registry registry;
  const Gauge gauge = registry.AddGauge("adamant_test_level", "Level.", {{"kind", "a"}});
  registry.AddGauge("adamant_test_level", "Level.", {{"kind", "b"}});
  const Counter counter = registry.AddCounter("adamant_test_total", "All.");
  registry.AddGauge("adamant_test_bytes", "Bytes.").Set(9);
  registry.RemoveAllLike(gauge);
  registry.RemoveAllLike(counter);
  const std::string text = registry.Text();
  EXPECT_THAT(text, Not(HasSubstr("adamant_test_level")));
  EXPECT_THAT(text, Not(HasSubstr("adamant_test_total")));
  EXPECT_THAT(text, HasSubstr("adamant_test_bytes 9"));
  registry.AddGauge("adamant_test_level", "Level.", {{"kind", "a"}}).Set(4);
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_level{kind=\"a\"} 4"));
}

TEST(MetricsTest, ATotalNeverFalls) {
  Registry registry;
  Total total(registry.AddCounter("adamant_test_total", "All."));
  for (const double reached : {2.0, 5.0, 3.0, 6.0}) {
    total.Reach(reached);
  }
  EXPECT_EQ(total.reached(), 6);
  EXPECT_THAT(registry.Text(), HasSubstr("adamant_test_total 6\n"));
}

TEST(MetricsTest, EveryProcessTellsOfItself) {
  const Registry registry;
  const std::string text = registry.Text();
  for (const char* name : {"process_resident_memory_bytes",
                           "process_virtual_memory_bytes",
                           "process_open_fds",
                           "process_max_fds",
                           "process_start_time_seconds"}) {
    EXPECT_THAT(text, ContainsRegex(std::string("\n") + name + " [1-9]"));
  }
  EXPECT_THAT(text, HasSubstr("\nprocess_cpu_seconds_total "));
  EXPECT_THAT(text, ContainsRegex("adamant_build_info\\{[^}]*version=\"[0-9.]+\"[^}]*\\} 1"));
}

TEST(MetricsTest, ProcessorTimeIsReadWhenItIsAskedFor) {
  const Registry registry;
  const auto read = [&] {
    const std::string text = registry.Text();
    const std::string name = "\nprocess_cpu_seconds_total ";
    return std::stod(text.substr(text.find(name) + name.size()));
  };
  const double before = read();
  for (std::uint64_t i = 0; read() <= before; ++i) {  // each answer costs some of it
    ASSERT_LT(i, std::uint64_t{1'000'000});
  }
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
