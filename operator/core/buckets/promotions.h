#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/dead_servers.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Collects the proposals of secondaries to take over, and chooses among them.
/// Threads: one thread at a time.
class Promotions {
 public:
  using TimePoint = Clock::TimePoint;

  /// Time for others to propose too, from the first proposal.
  static constexpr std::chrono::milliseconds kWindow{50};

  /// The arguments must outlive this.
  Promotions(const Configurations& configurations, const DeadServers& dead_servers)
      : configurations_(configurations), dead_servers_(dead_servers) {}

  /// Takes a proposal that the configurations allow.
  void Add(const Proposal& proposal, TimePoint now);

  /// The winners whose time has come, at most one for a bucket: who has the highest lsn; among
  /// equals, who is primary of the fewest buckets. It has come when the window is over, every other
  /// replica that is not dead has proposed, or the primary has released the configuration.
  std::vector<Proposal> Decide(TimePoint now, std::uint32_t servers);

  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  struct Round {
    ConfigurationVersion configuration_version = 0;
    TimePoint until{};
    std::vector<Proposal> proposals{};
  };

  [[nodiscard]] bool IsOver(BucketId bucket, const Round& round, TimePoint now) const;
  [[nodiscard]] const Proposal* Best(const Round& round, const Load& load) const;

  const Configurations& configurations_;
  const DeadServers& dead_servers_;
  std::map<std::uint32_t, Round> rounds_;  // by bucket
};

}  // namespace adamant::controller
