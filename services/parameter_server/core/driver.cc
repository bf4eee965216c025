#include "services/parameter_server/core/driver.h"

#include <chrono>
#include <optional>

namespace adamant::parameter_server {
namespace {

double Seconds(Clock::Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::optional<protocol::FailoverTimes> TimesOf(const FailoverTimes& failover) {
  if (failover.detect + failover.replace <= Clock::Duration::zero()) {
    return std::nullopt;  // it did not take over
  }
  return protocol::FailoverTimes{.detect_seconds = Seconds(failover.detect),
                                 .replace_seconds = Seconds(failover.replace),
                                 .reconcile_seconds = Seconds(failover.reconcile)};
}

}  // namespace

protocol::BucketsReady ReadyOf(const std::vector<BucketReport>& reports) {
  protocol::BucketsReady ready;
  for (const BucketReport& report : reports) {
    ready.buckets.push_back({.bucket = report.bucket,
                             .configuration_version = report.configuration_version,
                             .lost = report.lost,
                             .detail = report.detail,
                             .failover = TimesOf(report.failover),
                             .updates = report.updates});
  }
  return ready;
}

}  // namespace adamant::parameter_server
