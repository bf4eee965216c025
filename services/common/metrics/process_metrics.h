#pragma once

#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"

namespace adamant::metrics {

/// Facts that the kernel knows of this process, under the names that all of Prometheus' clients
/// give them. Threads: any.
class ProcessMetrics {
 public:
  /// `registry` must outlive this.
  explicit ProcessMetrics(Registry& registry);

  /// Reads them from /proc; what cannot be read stays as it was.
  void Update();

 private:
  Mutex mutex_;
  Total processor_ ABSL_GUARDED_BY(mutex_);
  const Gauge resident_;
  const Gauge virtual_;
  const Gauge open_files_;
  const Gauge most_files_;
  const Gauge started_;
};

}  // namespace adamant::metrics
