#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/buckets/configurations.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Spreads buckets over servers: which should learn which, leave, or be handed over to. Copies of a
/// bucket go to different servers, and to different zones and machines where they are known, also
/// later, when there are such again; each server gets as many copies and as many primaries as the
/// others.
/// Threads: any.
/// Source: docs/design/0002-replication.md, "Hints".
class Balancer {
 public:
  using TimePoint = Clock::TimePoint;

  /// A server that is away may come back within this time before its copies are made elsewhere.
  static constexpr std::chrono::milliseconds kAwayTime{10'000};

  /// Buckets of a server that learn, are learnt from or are handed over at a time; more, as long as
  /// all of them together have no more bytes than this. Each round costs a write of the job's
  /// state, so many small buckets go together.
  static constexpr std::uint32_t kMovesPerServer = 2;
  static constexpr std::uint64_t kMovedBytesPerServer = std::uint64_t{16} << 20;

  struct Server {
    ServerId id;            ///< the process that runs in this slot
    bool running = false;   ///< and has opened its disk
    bool draining = false;  ///< is about to stop
    std::string node{};     ///< empty: not known
    std::string zone{};
    TimePoint away_since{};  ///< when not running
  };

  /// `settings` must outlive this.
  explicit Balancer(const JobSettings& settings) : settings_(settings) {}

  /// Returns who creates each bucket. Every server must be running.
  [[nodiscard]] std::vector<ServerId> Assign(const std::vector<Server>& servers) const;

  /// Returns who should create a bucket instead of a server that has died; nullopt: none
  /// runs that is not draining.
  [[nodiscard]] static std::optional<ServerId> Replacement(const std::vector<Server>& servers,
                                                           const Load& load);

  /// Gives hints about every bucket. `servers` are all, by slot.
  void PlaceHints(const std::vector<Server>& servers,
                  Configurations& configurations,
                  TimePoint now) const;

  /// Returns when time alone changes the hints.
  [[nodiscard]] static std::optional<TimePoint> NextTimer(const std::vector<Server>& servers,
                                                          TimePoint now);

 private:
  const JobSettings& settings_;
};

}  // namespace adamant::controller
