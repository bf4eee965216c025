#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/buckets/placement.h"
#include "operator/core/diagnosis/training_meter.h"
#include "operator/core/job/deadlines.h"
#include "operator/core/processes/disk_alarms.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// State of a job as `adamant status` shows it; mirrors JobStatus of control.proto.
struct JobReport {
  struct MemberReport {
    SlotId id;
    Incarnation incarnation = 0;
    std::string state;  ///< Waiting, Starting, Running, Leaving, Restarting, Left
    std::string metrics_address{};
    std::uint32_t buckets = 0;  ///< that it is primary of
    std::uint32_t copies = 0;   ///< that it is a member of
    double oldest_unflushed_seconds = 0;
    std::string address{};      ///< where it serves
    std::string alarm{};        ///< what it cannot do at the moment; empty: nothing
    double silent_seconds = 0;  ///< of one that runs: since it was heard; 0: not known
  };

  std::string name;
  std::uint64_t term = 0;
  Phase phase = Phase::kPending;
  DataEpoch epoch = 0;
  std::uint64_t epochs = 0;
  std::uint64_t counted_examples = 0;
  std::uint64_t total_examples = 0;
  double examples_per_second = 0;
  double training_loss = 0;
  double accuracy = 0;
  std::uint32_t restarts = 0;
  std::string message;
  bool invalid = false;   ///< failed because the data does not fit the manifest
  bool released = false;  ///< suspended as it could not start, not by the user
  EndKind end = EndKind::kOther;
  /// Of a job that failed: the field of its manifest that holds the deadline which is over, and
  /// must change before it can go on. Empty: none, or it was asked of another process.
  std::string over_deadline{};
  /// Starting, but of a job that another controller had begun to lead: its processes train on, if
  /// they can, and which of its servers run is known by now.
  bool goes_on = false;
  std::vector<MemberReport> members;
  std::vector<BucketStatus> buckets{};
  BucketSummary bucket_summary{};
  std::optional<DiskWait> disk_wait{};  ///< while it is starting; not part of JobStatus
  std::optional<FailoverReport> last_failover{};
  std::uint64_t checkpoint = 0;        ///< newest one; 0: none
  double checkpoint_held_seconds = 0;  ///< time for which pushes were paused for it
  std::uint64_t attempt = 1;           ///< one more for each time that the job went back
  double rate_factor = 1;              ///< on all learning rates, in this attempt
  std::string divergence{};            ///< what was noticed last; empty: nothing
  std::uint64_t undone_updates = 0;    ///< by going back, over the job
  std::uint64_t undone_examples = 0;
  std::uint64_t updates_lost = 0;  ///< that no worker could send again, over the job
  /// Rolled back, and no worker has said yet whether they are sent again.
  std::uint64_t updates_awaited = 0;
  double batches_of_others = 0;  ///< between a fetch and its push: mean of this epoch
};

/// Sums up a job from what its controller's parts know.
/// Threads: one thread at a time.
class Reporter {
 public:
  /// Facts that only the controller knows.
  struct Moment {
    Clock::TimePoint now{};  ///< up to when time was counted
    bool handles = false;    ///< events: the controller has not just begun
    bool goes_on = false;    ///< the job had begun under another controller
  };

  /// The arguments must outlive this.
  Reporter(const JobSettings& settings,
           const JobState& state,
           const ProcessTable& processes,
           const Placement& placement,
           const TrainingMeter& meter,
           const DiskAlarms& alarms)
      : settings_(settings),
        state_(state),
        processes_(processes),
        placement_(placement),
        meter_(meter),
        alarms_(alarms) {}

  [[nodiscard]] JobReport Report(const Moment& moment) const;

 private:
  void AddMembers(JobReport& report, Clock::TimePoint now) const;
  void AddBuckets(JobReport& report, bool live) const;
  void AddRecovery(JobReport& report) const;
  [[nodiscard]] double LastLoss() const;

  const JobSettings& settings_;
  const JobState& state_;
  const ProcessTable& processes_;
  const Placement& placement_;
  const TrainingMeter& meter_;
  const DiskAlarms& alarms_;
};

}  // namespace adamant::controller
