#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/core/buckets/configurations.h"
#include "operator/core/state/messages.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Buckets that have lost all replicas, and what their return waits for.
struct DiskWait {
  std::uint32_t buckets = 0;
  std::set<std::uint32_t> servers{};  ///< slots whose disks are not known, as those of others are
  Clock::TimePoint until{};           ///< then they come back without, where others have them
};

/// Finds the disk from which a bucket comes back whose replicas are all dead. What a server
/// reported of its disk when it started counts until the server begins to hold or to learn the
/// bucket. Threads: one thread at a time.
class Restores {
 public:
  using TimePoint = Clock::TimePoint;

  /// After this time a bucket comes back without those of its last replicas that have not reported.
  static constexpr std::chrono::milliseconds kTimeout{60'000};

  /// `logged`: replicas acknowledge only what is in their log on disk, so that each has it all.
  explicit Restores(bool logged) : logged_(logged) {}

  /// Takes in what the disk of this process holds.
  void OnStored(ServerId from, const StoredBuckets& stored);

  /// The process has gone. Call it before the death of a process is a reason to choose.
  void Forget(std::uint32_t slot) { reports_.erase(slot); }

  /// A later process of its slot has a disk that nobody of the slot had opened: its own is left, or
  /// deleted.
  [[nodiscard]] bool HasLostDisk(ServerId server) const;

  /// It begins to hold or learn the bucket.
  void Touch(BucketId bucket, ServerId server);

  /// A living server does not have the bucket, whatever it reported.
  void Reject(BucketId bucket, ServerId server, const std::string& why);

  /// The configuration's replicas are lost. Remembers those who were lost first, until one serves:
  /// who was chosen since may have served and ended before a word of it came.
  void OnLost(BucketId bucket, const Configuration& configuration, TimePoint now);
  void OnServed(BucketId bucket) { losses_.erase(bucket); }

  struct Source {
    ServerId server{};
    std::uint64_t updates = 0;     ///< that its disk holds outside of its log
    std::uint64_t generation = 0;  ///< likewise
    std::uint64_t snapshot = 0;    ///< that it comes back from; 0: from what is live
  };
  using Sources = std::map<std::uint32_t, Source>;  ///< by bucket

  /// Chooses who is to serve the lost bucket; of those who have as much, who is primary of the
  /// fewest. nullopt: it is not known yet. Error: DataLoss when there is nobody who could, and
  /// everybody is known; says what each has.
  [[nodiscard]] absl::StatusOr<std::optional<Source>> Choose(BucketId bucket,
                                                             const Load& load,
                                                             TimePoint now) const;

  /// Returns true while there is time for whoever may have more of the lost bucket.
  [[nodiscard]] bool IsWaiting(BucketId bucket, TimePoint now) const {
    return now < losses_.at(bucket).since + kTimeout;
  }

  /// Returns what lost buckets wait for once some servers have reported; nullopt: for nobody else.
  [[nodiscard]] std::optional<DiskWait> WaitsForDisks() const;

  /// Returns when Choose and IsWaiting may say something else without another report.
  [[nodiscard]] std::optional<TimePoint> NextTimer(TimePoint now) const;

 private:
  struct Report {
    ServerId from;
    std::uint64_t previous = 0;
    std::map<std::uint32_t, StoredBucket> buckets;
  };
  struct Loss {
    TimePoint since{};                               // of the last of these configurations
    ConfigurationVersion configuration_version = 0;  // likewise
    std::vector<ServerId> awaited;                   // replicas of any
    std::vector<ServerId> replicas;  // of the first: the last that are known to have served
    std::uint64_t generation = 0;    // likewise
    std::uint64_t oldest = 0;        // generation: what is older was given up for a snapshot
  };

  [[nodiscard]] const Report* ReportAfter(ServerId replica) const;
  [[nodiscard]] static bool WasReplica(const Report& report, const Loss& loss);
  [[nodiscard]] absl::Status NobodyHas(BucketId bucket, const Loss& loss) const;

  const bool logged_;
  std::map<std::uint32_t, Report> reports_;  // by slot
  std::map<std::uint32_t, Loss> losses_;     // by bucket
};

}  // namespace adamant::controller
