#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace adamant::metrics {

class ProcessMetrics;

/// A number that only rises. A handle: cheap to copy, valid as long as its Registry has the metric.
/// Threads: any; lock-free.
class Counter {
 public:
  void Increment(double by = 1) const;  ///< by >= 0

 private:
  friend class Registry;
  Counter(void* counter, void* family) : counter_(counter), family_(family) {}
  void* counter_;
  void* family_;
};

/// A counter that follows a total kept elsewhere. Threads: one.
class Total {
 public:
  explicit Total(Counter counter) : counter_(counter) {}

  /// Raises it to `total`; one that is lower changes nothing.
  void Reach(double total);

  [[nodiscard]] double reached() const { return reached_; }
  [[nodiscard]] const Counter& counter() const { return counter_; }

 private:
  Counter counter_;
  double reached_ = 0;
};

/// A number that rises and falls. A handle like Counter.
/// Threads: any.
class Gauge {
 public:
  void Set(double value) const;
  void Add(double by) const;

 private:
  friend class Registry;
  Gauge(void* gauge, void* family) : gauge_(gauge), family_(family) {}
  void* gauge_;
  void* family_;
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

/// The metrics of one process; those that all processes have are in it from the start: what the
/// kernel knows of the process, and which program it is. Names follow Prometheus:
/// `adamant_parameter_server_push_seconds`, base units, counters end in `_total`; docs/metrics.md
/// lists them all. Labels come from closed sets. Registering the same name and labels again returns
/// the same metric; a name has one type and one help text. Threads: any. Registering and removing
/// lock, and wait while all metrics are collected: do it rarely and keep the handles.
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

  /// Takes one metric out. Its handles must not be used any more. Takes as long as there are
  /// metrics of its name.
  void Remove(const Counter& counter);
  void Remove(const Gauge& gauge);

  /// Takes all metrics of this one's name out, at once. Nobody may register one of that name
  /// meanwhile.
  void RemoveAllLike(const Counter& counter);
  void RemoveAllLike(const Gauge& gauge);

  /// All metrics in Prometheus' text format.
  [[nodiscard]] std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  const std::unique_ptr<ProcessMetrics> process_;
};

/// `count` bounds from `first`, each `factor` times the one before: for durations and sizes.
std::vector<double> ExponentialBounds(double first, double factor, int count);

}  // namespace adamant::metrics
