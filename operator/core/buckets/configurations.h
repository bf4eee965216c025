#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// What the controller would like a bucket's primary to do.
struct Advice {
  std::optional<Holder> learner{};
  std::optional<Holder> leaver{};
  std::optional<Holder> heir{};
};

/// The records of all buckets. They change only here, each change by compare and swap on the epoch:
/// a proposal for another epoch than the record's changes nothing.
/// Threads: one thread at a time.
/// Source: docs/design/0002-replication.md.
class Configurations {
 public:
  enum class Service : std::uint8_t {
    kAwaited,    ///< the primary has not said that it serves
    kRestoring,  ///< all members were lost
    kServed,     ///< it serves
  };

  /// `state` must outlive this.
  Configurations(JobState& state, std::uint32_t min_in_sync);

  [[nodiscard]] const std::vector<Bucket>& records() const { return state_.buckets; }
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(state_.buckets.size());
  }
  [[nodiscard]] const Bucket& At(std::uint32_t bucket) const { return state_.buckets[bucket]; }
  /// By bucket; one rises when the bucket has lost all members, and perhaps updates.
  [[nodiscard]] std::vector<std::uint64_t> Generations() const;
  [[nodiscard]] Service ServiceOf(std::uint32_t bucket) const { return service_[bucket]; }
  [[nodiscard]] bool IsServed(std::uint32_t bucket) const {
    return service_[bucket] == Service::kServed;
  }

  /// The first records: bucket i is to be created by `primaries[i]`.
  void Assign(const std::vector<Holder>& primaries);

  /// The proposal is for the present epoch, and by somebody who may make it. ADD is only for the
  /// learner that the record names. DROP may name a learner too, which the primary had proposed to
  /// add: the epoch rises, so that the addition is void. A member that is not proved to be dead may
  /// not leave fewer than min_in_sync behind: it may be the one that has what was acknowledged.
  [[nodiscard]] bool Allows(const Proposal& proposal) const;

  /// Makes a change that is allowed. A take-over keeps the old primary as a member if it released
  /// the epoch or may not leave. A drop or an addition leaves the bucket served; a new primary has
  /// to say that it serves.
  void Apply(const Proposal& proposal);

  /// The bucket comes back from this holder's disk: from its live state, or from a snapshot.
  void Restore(std::uint32_t bucket, Holder holder, std::uint64_t snapshot = 0);

  /// This holder is to create the bucket again, as it was at first. `snapshot`: an id of its own
  /// for what nobody has stored; nothing from before counts.
  void MakeAnew(std::uint32_t bucket, Holder holder, std::uint64_t snapshot);

  /// Another holder is to create a bucket that is not created yet.
  void Reassign(std::uint32_t bucket, Holder holder);

  /// The process has gone: what it served is served no more.
  void OnGone(Holder holder);

  /// All members were lost.
  void SetRestoring(std::uint32_t bucket) { service_[bucket] = Service::kRestoring; }

  /// A holder says that it serves a bucket under an epoch. Returns whether that is news: false also
  /// when the record says otherwise.
  bool OnServing(Holder holder, std::uint32_t bucket, std::uint64_t epoch);

  void SetAdvice(std::uint32_t bucket, const Advice& advice);

  /// Whether records have changed since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  void Change(std::uint32_t bucket);
  [[nodiscard]] bool MayLeave(const Bucket& record, Holder member) const;

  JobState& state_;
  const std::uint32_t min_in_sync_;
  std::vector<Service> service_;
  bool changed_ = false;
};

/// For how many buckets each server is the primary, and how many it is to hold: as a member, or as
/// a learner that is not a member yet. By slot.
struct Load {
  Load(std::span<const Bucket> records, std::uint32_t servers);

  std::vector<std::uint32_t> primaries;
  std::vector<std::uint32_t> copies;
};

}  // namespace adamant::controller
