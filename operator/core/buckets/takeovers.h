#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/deaths.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Collects the proposals of secondaries to take over, and chooses among them.
/// Threads: one thread at a time.
class Takeovers {
 public:
  using TimePoint = Clock::TimePoint;

  /// Time for others to propose too, from the first proposal.
  static constexpr std::chrono::milliseconds kWindow{50};

  /// The arguments must outlive this.
  Takeovers(const Configurations& configurations, const Deaths& deaths)
      : configurations_(configurations), deaths_(deaths) {}

  /// Takes a proposal that the configurations allow.
  void Add(const Proposal& proposal, TimePoint now);

  /// The winners whose time has come, at most one for a bucket: who has the highest lsn; among
  /// equals, who is primary of the fewest buckets. It has come when the window is over, every other
  /// member that is not dead has proposed, or the primary has released the epoch.
  std::vector<Proposal> Decide(TimePoint now, std::uint32_t servers);

  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  struct Round {
    std::uint64_t epoch = 0;
    TimePoint until{};
    std::vector<Proposal> proposals{};
  };

  [[nodiscard]] bool IsOver(std::uint32_t bucket, const Round& round, TimePoint now) const;
  [[nodiscard]] const Proposal* Best(const Round& round, const Load& load) const;

  const Configurations& configurations_;
  const Deaths& deaths_;
  std::map<std::uint32_t, Round> rounds_;  // by bucket
};

}  // namespace adamant::controller
