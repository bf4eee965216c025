#include "services/common/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <cstdlib>
#include <exception>
#include <memory>

#include "services/common/base/check.h"
#include "services/common/metrics/process_metrics.h"

namespace adamant::metrics {

struct Registry::Impl {
  std::shared_ptr<prometheus::Registry> registry;
};

namespace {

prometheus::Labels ToLabels(std::initializer_list<Label> labels) {
  prometheus::Labels result;
  for (const auto& [name, value] : labels) {
    result.emplace(name, value);
  }
  return result;
}

template <class Metric>
struct Added {
  Metric* metric;
  prometheus::Family<Metric>* family;
};

// The metric of this name and these labels, made when there is none.
template <class Metric, class Builder, class... Bounds>
Added<Metric> Add(Builder builder,
                  prometheus::Registry& registry,
                  std::string_view name,
                  std::string_view help,
                  std::initializer_list<Label> labels,
                  const Bounds&... bounds) {
  try {
    prometheus::Family<Metric>& family =
        builder.Name(std::string(name)).Help(std::string(help)).Register(registry);
    return {&family.Add(ToLabels(labels), bounds...), &family};
  } catch (const std::exception& error) {  // the name has another type already
    CheckFailed("metric registered twice", __FILE__, __LINE__, std::string(name) + error.what());
  }
}

}  // namespace

// What is not finite would stay in a sum for good.
void Counter::Increment(double by) const {
  if (std::isfinite(by)) {
    static_cast<prometheus::Counter*>(counter_)->Increment(by);
  }
}

void Gauge::Set(double value) const {
  if (std::isfinite(value)) {
    static_cast<prometheus::Gauge*>(gauge_)->Set(value);
  }
}

void Gauge::Add(double by) const {
  if (std::isfinite(by)) {
    static_cast<prometheus::Gauge*>(gauge_)->Increment(by);
  }
}

void Histogram::Observe(double value) const {
  if (std::isfinite(value)) {
    static_cast<prometheus::Histogram*>(histogram_)->Observe(value);
  }
}

void Total::Reach(double total) {
  if (total > reached_) {
    counter_.Increment(total - reached_);
    reached_ = total;
  }
}

Registry::Registry()
    : impl_(new Impl{std::make_shared<prometheus::Registry>()}),
      process_(std::make_unique<ProcessMetrics>(*this)) {
  const char* const commit = std::getenv("ADAMANT_COMMIT");  // that its image was built from
  AddGauge("adamant_build_info",
           "1; which program this is.",
           {{"version", ADAMANT_VERSION}, {"commit", commit != nullptr ? commit : ""}})
      .Set(1);
}

Registry::~Registry() = default;

Counter Registry::AddCounter(std::string_view name,
                             std::string_view help,
                             std::initializer_list<Label> labels) {
  const auto added = metrics::Add<prometheus::Counter>(
      prometheus::BuildCounter(), *impl_->registry, name, help, labels);
  return {added.metric, added.family};
}

Gauge Registry::AddGauge(std::string_view name,
                         std::string_view help,
                         std::initializer_list<Label> labels) {
  const auto added = metrics::Add<prometheus::Gauge>(
      prometheus::BuildGauge(), *impl_->registry, name, help, labels);
  return {added.metric, added.family};
}

Histogram Registry::AddHistogram(std::string_view name,
                                 std::string_view help,
                                 const std::vector<double>& bounds,
                                 std::initializer_list<Label> labels) {
  return Histogram(metrics::Add<prometheus::Histogram>(
                       prometheus::BuildHistogram(), *impl_->registry, name, help, labels, bounds)
                       .metric);
}

void Registry::Remove(const Counter& counter) {
  static_cast<prometheus::Family<prometheus::Counter>*>(counter.family_)
      ->Remove(static_cast<prometheus::Counter*>(counter.counter_));
}

void Registry::Remove(const Gauge& gauge) {
  static_cast<prometheus::Family<prometheus::Gauge>*>(gauge.family_)
      ->Remove(static_cast<prometheus::Gauge*>(gauge.gauge_));
}

void Registry::RemoveAllLike(const Counter& counter) {
  impl_->registry->Remove(*static_cast<prometheus::Family<prometheus::Counter>*>(counter.family_));
}

void Registry::RemoveAllLike(const Gauge& gauge) {
  impl_->registry->Remove(*static_cast<prometheus::Family<prometheus::Gauge>*>(gauge.family_));
}

std::string Registry::Text() const {
  process_->Update();
  return prometheus::TextSerializer().Serialize(impl_->registry->Collect());
}

std::vector<double> ExponentialBounds(double first, double factor, int count) {
  std::vector<double> bounds;
  for (double bound = first; count > 0; --count, bound *= factor) {
    bounds.push_back(bound);
  }
  return bounds;
}

}  // namespace adamant::metrics
