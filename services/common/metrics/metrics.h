#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace adamant::metrics {

/// A number that only rises. A handle: cheap to copy, valid as long as its Registry.
/// Threads: any; lock-free.
class Counter {
 public:
  void Increment(double by = 1) const;  ///< by >= 0

 private:
  friend class Registry;
  explicit Counter(void* counter) : counter_(counter) {}
  void* counter_;
};

/// A number that rises and falls. A handle like Counter.
class Gauge {
 public:
  void Set(double value) const;
  void Add(double by) const;

 private:
  friend class Registry;
  explicit Gauge(void* gauge) : gauge_(gauge) {}
  void* gauge_;
};

/// Counts observations by size. A handle like Counter.
/// Threads: any; takes a short lock, so observe whole messages and batches, not their elements.
class Histogram {
 public:
  void Observe(double value) const;

 private:
  friend class Registry;
  explicit Histogram(void* histogram) : histogram_(histogram) {}
  void* histogram_;
};

using Label = std::pair<std::string_view, std::string_view>;

/// The metrics of one process. Names follow Prometheus: `adamant_parameter_server_push_seconds`,
/// base units, counters end in `_total`; docs/metrics.md lists them all. Labels come from closed
/// sets. Registering the same name and labels again returns the same metric; a name has one type
/// and one help text.
/// Threads: any. Registering locks: do it at start-up and keep the handles.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter AddCounter(std::string_view name,
                     std::string_view help,
                     std::initializer_list<Label> labels = {});
  Gauge AddGauge(std::string_view name,
                 std::string_view help,
                 std::initializer_list<Label> labels = {});

  /// `bounds`: upper bounds of the buckets, ascending; one more bucket takes what is larger.
  Histogram AddHistogram(std::string_view name,
                         std::string_view help,
                         const std::vector<double>& bounds,
                         std::initializer_list<Label> labels = {});

  /// All metrics in Prometheus' text format.
  [[nodiscard]] std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// `count` bounds from `first`, each `factor` times the one before: for durations and sizes.
std::vector<double> ExponentialBounds(double first, double factor, int count);

}  // namespace adamant::metrics
