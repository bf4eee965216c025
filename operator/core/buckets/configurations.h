#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Changes that the controller would like a bucket's primary to make.
struct PlacementHint {
  std::optional<ServerId> learner{};
  std::optional<ServerId> departing{};
  std::optional<ServerId> successor{};
};

/// The configurations of all buckets. They change only here, each change by compare and swap on the
/// version: a proposal for another version than the present one changes nothing. Threads:
/// one thread at a time. Source: docs/design/0002-replication.md.
class Configurations {
 public:
  enum class Service : std::uint8_t {
    kAwaited,    ///< the primary has not said that it serves
    kRestoring,  ///< all replicas were lost
    kServed,     ///< it serves
  };

  /// `state` must outlive this.
  Configurations(JobState& state, std::uint32_t min_in_sync);

  [[nodiscard]] const std::vector<Configuration>& all() const { return state_.buckets; }
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(state_.buckets.size());
  }
  [[nodiscard]] const Configuration& At(BucketId bucket) const { return state_.buckets[bucket]; }
  /// By bucket; one rises when the bucket has lost all replicas, and perhaps updates.
  [[nodiscard]] std::vector<std::uint64_t> Generations() const;
  [[nodiscard]] Service ServiceOf(BucketId bucket) const { return service_[bucket]; }
  [[nodiscard]] bool IsServed(BucketId bucket) const {
    return service_[bucket] == Service::kServed;
  }

  /// The first configurations: bucket i is to be created by `primaries[i]`.
  void Assign(const std::vector<ServerId>& primaries);

  /// The proposal is for the present configuration, and by somebody who may make it. ADD is only
  /// for the learner that the configuration names. DROP may name a learner too, which the primary
  /// had proposed to add: the version rises, so that the addition is void. A replica that is not
  /// proved to be dead may not leave fewer than min_in_sync behind: it may be the one that has what
  /// was acknowledged.
  [[nodiscard]] bool Allows(const Proposal& proposal) const;

  /// Makes a change that is allowed. A promotion keeps the old primary as a replica if it released
  /// the configuration or may not leave. A drop or an addition leaves the bucket served; a new
  /// primary has to say that it serves.
  void Apply(const Proposal& proposal);

  /// The bucket comes back from this server's disk: from its live state, or from a snapshot.
  void Restore(BucketId bucket, ServerId server, std::uint64_t snapshot = 0);

  /// This server is to create the bucket again, as it was at first. `snapshot`: an id of its own
  /// for what nobody has stored; nothing from before counts.
  void MakeAnew(BucketId bucket, ServerId server, std::uint64_t snapshot);

  /// Another server is to create a bucket that is not created yet.
  void Reassign(BucketId bucket, ServerId server);

  /// The process has gone: what it served is served no more.
  void OnGone(ServerId server);

  /// All replicas were lost.
  void SetRestoring(BucketId bucket) { service_[bucket] = Service::kRestoring; }

  /// A server says that it serves a bucket under a configuration. Returns whether that is news:
  /// false also when the configuration says otherwise.
  bool OnServing(ServerId server, BucketId bucket, ConfigurationVersion configuration_version);

  void SetHint(BucketId bucket, const PlacementHint& hint);

  /// Returns true if configurations have changed since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  void Change(BucketId bucket);
  [[nodiscard]] bool MayLeave(const Configuration& configuration, ServerId replica) const;

  JobState& state_;
  const std::uint32_t min_in_sync_;
  std::vector<Service> service_;
  bool changed_ = false;
};

/// For how many buckets each server is the primary, and how many it is to hold: as a replica, or as
/// a learner that is not a replica yet. By slot.
struct Load {
  Load(std::span<const Configuration> configurations, std::uint32_t servers);

  std::vector<std::uint32_t> primaries;
  std::vector<std::uint32_t> copies;
};

}  // namespace adamant::controller
