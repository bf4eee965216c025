#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Reports of parameter servers on their disks: that they cannot store at the moment, what they
/// found damaged when they began, and while they ran. Notes each for the users.
/// Threads: one thread at a time.
class DiskAlarms {
 public:
  using TimePoint = Clock::TimePoint;

  /// Training goes on while a server raises an alarm. The job fails when for this time, under an
  /// alarm, no example could be counted.
  static constexpr std::chrono::milliseconds kTimeout{20'000};
  static constexpr std::chrono::minutes kInterval{1};  ///< in which one that stays is told again

  /// Point that the job has reached.
  struct Progress {
    bool begun = false;         ///< training has
    bool counting = false;      ///< examples can be counted in this step
    std::uint64_t counted = 0;  ///< examples of the epoch
  };

  explicit DiskAlarms(Outbox& outbox) : outbox_(outbox) {}

  /// Takes what a server cannot do at the moment; "": nothing. Returns why the job has to fail; "":
  /// it has not.
  std::string OnAlarm(SlotId server,
                      const std::string& alarm,
                      const Progress& progress,
                      TimePoint now);

  /// Takes what a server found when it began. Its buckets come from other copies, where there are
  /// any; its disk may be failing all the same. Each start of the server finds the same.
  void OnStored(SlotId server, const StoredBuckets& stored);

  /// Takes what a server found while it runs: what it holds is in memory, and in other copies.
  void OnDamages(SlotId server, const std::vector<std::string>& damages);

  /// Nobody has heard meanwhile what was counted.
  void GrantTime(TimePoint now) { last_progress_ = now; }

  /// The server's process is gone.
  void Forget(SlotId server);

  /// The processes of all servers are.
  void Clear() { alarms_.clear(); }

  [[nodiscard]] std::string AlarmOf(SlotId server) const;

 private:
  struct Alarm {
    std::string text;
    TimePoint since{};
    TimePoint told{};  // last
  };

  Outbox& outbox_;
  std::map<SlotId, Alarm> alarms_;
  std::map<SlotId, std::string> stored_damages_;             // as told last
  std::map<SlotId, std::set<std::string>> running_damages_;  // told of its process
  std::uint64_t counted_ = 0;  // examples of the epoch, when they were last looked at
  TimePoint last_progress_{};  // when something was counted, or could not be
};

}  // namespace adamant::controller
