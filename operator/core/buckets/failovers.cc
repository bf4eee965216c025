#include "operator/core/buckets/failovers.h"

#include <algorithm>

#include "services/common/base/seconds.h"

namespace adamant::controller {

void BucketSummary::Add(const BucketStatus& bucket) {
  ++states[bucket.state];
  largest_version = std::max(largest_version, bucket.configuration.version);
  largest_lag = std::max(largest_lag, bucket.lag);
  rolled_back += bucket.rolled_back;
  rolled_back_buckets += bucket.rolled_back > 0 ? 1 : 0;
}

void Failovers::OnPromoted(BucketId bucket, TimePoint now) {
  ++state_.failovers;
  events_.insert_or_assign(
      bucket, Event{.configuration_version = configurations_.At(bucket).version, .at = now});
  last_ = bucket;
}

std::uint64_t Failovers::OnRestored(BucketId bucket, std::uint64_t updates) {
  ++state_.restores;
  BucketHistory& history = state_.histories[bucket];
  const std::uint64_t lost = history.updates > updates ? history.updates - updates : 0;
  history.rolled_back += lost;
  history.updates = updates;
  return lost;
}

void Failovers::OnTimes(BucketId bucket, const FailoverTimes& times) {
  if (const auto event = events_.find(bucket); event != events_.end()) {
    event->second.times = times;
  }
}

void Failovers::OnProgress(const BucketProgress& progress) {
  progress_.insert_or_assign(progress.bucket,
                             Progress{.committed = progress.committed, .lag = progress.lag});
  state_.histories[progress.bucket].updates = progress.updates;
}

std::vector<double> Failovers::OnConfigurationsChanged(TimePoint now) {
  std::vector<double> caught_up;
  for (auto& [bucket, event] : events_) {
    if (event.catch_up_seconds == 0 && configurations_.IsServed(bucket) &&
        configurations_.At(bucket).replicas.size() >= settings_.copies) {
      event.catch_up_seconds = Seconds(now - event.at);
      caught_up.push_back(event.catch_up_seconds);
    }
  }
  return caught_up;
}

BucketStatus Failovers::ReportOf(BucketId bucket, std::optional<std::size_t> live_copies) const {
  const Configuration& configuration = configurations_.At(bucket);
  const auto service =
      live_copies ? configurations_.ServiceOf(bucket) : Configurations::Service::kServed;
  const std::size_t copies = live_copies.value_or(configuration.replicas.size());
  BucketStatus report{.bucket = bucket,
                      .state = std::string(StateOf(configuration, service, copies, settings_)),
                      .configuration = configuration,
                      .rolled_back = state_.histories[bucket].rolled_back};
  if (const auto progress = progress_.find(bucket); progress != progress_.end()) {
    report.committed = progress->second.committed;
    report.lag = progress->second.lag;
  }
  return report;
}

std::optional<FailoverReport> Failovers::Last(TimePoint now) const {
  if (state_.failovers == 0 && state_.restores == 0) {
    return std::nullopt;
  }
  FailoverReport report{.failovers = state_.failovers, .restores = state_.restores};
  if (last_) {
    const Event& event = events_.at(*last_);
    report.bucket = *last_;
    report.configuration_version = event.configuration_version;
    report.times = event.times;
    report.catch_up_seconds = event.catch_up_seconds;
    report.seconds_ago = Seconds(now - event.at);
  }
  return report;
}

std::string_view StateOf(const Configuration& configuration,
                         Configurations::Service service,
                         std::size_t live_copies,
                         const JobSettings& settings) {
  if (!configuration.created) {
    return "Creating";
  }
  if (service != Configurations::Service::kServed) {
    return service == Configurations::Service::kRestoring ? "Restoring" : "FailingOver";
  }
  if (live_copies < settings.min_in_sync) {
    return "Blocked";
  }
  return live_copies < settings.copies ? "Degraded" : "Ready";
}

}  // namespace adamant::controller
