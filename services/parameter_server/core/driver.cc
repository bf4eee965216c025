#include "services/parameter_server/core/driver.h"

#include <optional>

namespace adamant::parameter_server {
namespace {

std::optional<FailoverTimes> TimesOf(const FailoverTimes& failover) {
  const bool promoted = failover.detect_seconds + failover.replace_seconds > 0;
  return promoted ? std::optional(failover) : std::nullopt;
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
