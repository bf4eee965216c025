#pragma once

#include <map>
#include <string>
#include <utility>

#include "operator/kube/job/operator.h"
#include "operator/kube_client/http/metered_transport.h"
#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"

namespace adamant {

/// The operator's metrics of its own work, under the names that controller-runtime gives them where
/// it has such. Threads: any.
class OperatorMetrics final : public kube::RequestObserver, public kube::OperatorObserver {
 public:
  /// `registry` must outlive this.
  explicit OperatorMetrics(metrics::Registry& registry);

  void OnRequest(const kube::HttpRequest& request,
                 int code,
                 bool stream,
                 Clock::Duration took) override;

  void OnAdd() override { adds_.Increment(); }
  void OnDepth(std::size_t ready) override { depth_.Set(static_cast<double>(ready)); }
  void OnTaken(Clock::Duration waited) override;
  void OnDone(Clock::Duration worked) override;
  void OnRetry() override { retries_.Increment(); }
  void OnReconciled(Outcome outcome) override;

  /// Sets what is not told but looked at. Now and then.
  void Look(const kube::Operator& op);

 private:
  metrics::Registry& registry_;

  const metrics::Counter adds_;
  const metrics::Gauge depth_;
  const metrics::Gauge active_workers_;
  const metrics::Counter retries_;
  const metrics::Histogram waiting_;
  const metrics::Histogram reconciling_;
  const std::map<Outcome, metrics::Counter> outcomes_;
  const metrics::Counter pods_;
  const metrics::Gauge leader_;
  const metrics::Gauge members_;
  const metrics::Gauge plain_jobs_;
  std::map<std::string, metrics::Gauge> jobs_;  // by phase; of who calls Look

  Mutex mutex_;
  std::map<std::pair<std::string, int>, metrics::Counter> requests_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, metrics::Histogram> durations_ ABSL_GUARDED_BY(mutex_);  // by verb
};

}  // namespace adamant
