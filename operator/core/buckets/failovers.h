#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/core/buckets/configurations.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// States of buckets.
inline constexpr std::string_view kBucketStates[] = {
    "Creating", "Ready", "Degraded", "Blocked", "FailingOver", "Restoring"};

/// State of a bucket; mirrors BucketStatus of control.proto.
struct BucketStatus {
  BucketId bucket = 0;
  std::string state;
  Configuration configuration;
  std::uint64_t committed = 0;
  std::uint64_t lag = 0;
  std::uint64_t rolled_back = 0;
};

/// All buckets together; mirrors BucketSummary.
struct BucketSummary {
  std::map<std::string, std::uint32_t> states{};  ///< how many buckets are in each
  ConfigurationVersion largest_version = 0;
  std::uint64_t largest_lag = 0;
  std::uint64_t rolled_back = 0;          ///< updates, over the job
  std::uint32_t rolled_back_buckets = 0;  ///< that have lost any

  void Add(const BucketStatus& bucket);
};

/// The last promotion, and how many there were; mirrors FailoverStatus.
struct FailoverReport {
  BucketId bucket = 0;
  ConfigurationVersion configuration_version = 0;
  FailoverTimes times{};
  double catch_up_seconds = 0;
  double seconds_ago = 0;
  std::uint64_t failovers = 0;
  std::uint64_t restores = 0;
};

/// Keeps count of what happens to buckets: promotions and how long they took, updates, restores.
/// Threads: one thread at a time.
class Failovers {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  Failovers(const JobSettings& settings, JobState& state, const Configurations& configurations)
      : settings_(settings), state_(state), configurations_(configurations) {}

  /// A secondary has taken over, which was no transfer.
  void OnPromoted(BucketId bucket, TimePoint now);

  /// The bucket came back from disk with this number of updates. Returns how many are rolled back
  /// by that.
  std::uint64_t OnRestored(BucketId bucket, std::uint64_t updates);

  /// The new primary has told how long its promotion took.
  void OnTimes(BucketId bucket, const FailoverTimes& times);

  /// Takes in what the primary of a served bucket tells.
  void OnProgress(const BucketProgress& progress);

  /// Looks for buckets that have all their copies again; returns how long each was without.
  std::vector<double> OnConfigurationsChanged(TimePoint now);

  /// `live_copies`: of its replicas, how many are known to run; nullopt: the job does not run, and
  /// the bucket is as good as its configuration.
  [[nodiscard]] BucketStatus ReportOf(BucketId bucket,
                                      std::optional<std::size_t> live_copies) const;
  [[nodiscard]] std::optional<FailoverReport> Last(TimePoint now) const;

 private:
  struct Event {
    ConfigurationVersion configuration_version = 0;
    TimePoint at{};
    FailoverTimes times{};
    double catch_up_seconds = 0;
  };
  struct Progress {
    std::uint64_t committed = 0;
    std::uint64_t lag = 0;
  };

  const JobSettings& settings_;
  JobState& state_;
  const Configurations& configurations_;
  std::map<std::uint32_t, Event> events_;  // the last of each bucket
  std::optional<std::uint32_t> last_;      // the bucket of the last one of all
  std::map<std::uint32_t, Progress> progress_;
};

/// One of kBucketStates.
std::string_view StateOf(const Configuration& configuration,
                         Configurations::Service service,
                         std::size_t live_copies,
                         const JobSettings& settings);

}  // namespace adamant::controller
