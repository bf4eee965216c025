#pragma once

#include <map>

#include "operator/kube/certificates/certificate_observer.h"
#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"

namespace adamant {

/// Metrics of certificates, and of whom an operator refuses. Threads: any.
class CertificateMetrics final : public kube::CertificateObserver {
 public:
  /// `registry` must outlive this. `is_enabled`: jobs that begin now use TLS; without it there are
  /// no other series.
  CertificateMetrics(metrics::Registry& registry, bool is_enabled);

  void OnIssued(security::Role role) override;
  void OnRefused(Refusal reason) override;
  void OnEnd(Kind kind, security::WallTime end) override;

 private:
  void Forget(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  metrics::Registry& registry_;
  std::map<security::Role, metrics::Counter> issued_;
  std::map<Refusal, metrics::Counter> refused_;

  Mutex mutex_;
  std::map<Kind, metrics::Gauge> ends_ ABSL_GUARDED_BY(mutex_);  // that are known
};

}  // namespace adamant
