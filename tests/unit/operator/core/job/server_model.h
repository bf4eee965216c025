#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "operator/core/state/messages.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// What a parameter server's folder holds.
struct ServerDisk {
  std::uint64_t opened_by = 0;                                 ///< incarnation
  std::map<std::uint32_t, std::uint64_t> buckets;              ///< complete ones → generation
  std::map<std::uint64_t, std::set<std::uint32_t>> snapshots;  ///< stored as primary
  bool lost_snapshots = false;
};

/// The replication of one process of a parameter server, as far as its controller can see it: the
/// data of a bucket is a token that is created once, copied to learners and kept on disk.
class ServerModel {
 public:
  ServerModel(ServerId self, ServerDisk& disk) : self_(self), disk_(disk) {
    stored_.previous_incarnation = disk.opened_by;
    for (const auto& [bucket, generation] : disk.buckets) {
      stored_.buckets.push_back(
          {.bucket = bucket, .generation = generation, .complete = true, .detail = ""});
    }
    disk.opened_by = self.incarnation;
  }

  /// What to tell a controller that is new to it.
  [[nodiscard]] StoredBuckets Stored() const { return stored_; }

  /// Takes a new view; returns what it serves as primary.
  BucketsReady OnMembership(const Membership& view) {
    view_ = view;
    BucketsReady ready;
    for (std::uint32_t i = 0; i < view.buckets.size(); ++i) {
      const Configuration& configuration = view.buckets[i];
      if (configuration.Has(self_) || configuration.learner == self_) {
        Touch(i);
      } else {
        held_.erase(i);
      }
      const bool lost = configuration.primary == self_ && !Load(i, configuration);
      if (configuration.primary == self_) {
        ready.buckets.push_back(
            {.bucket = i, .configuration_version = configuration.version, .lost = lost});
      }
      if (configuration.Has(self_) && !lost) {
        disk_.buckets[i] = configuration.generation;
      }
    }
    return ready;
  }

  /// What it would like to change now. `silent` says who has not been heard for longer than a
  /// promise lasts; `copy` copies a bucket to a learner and returns whether that is done.
  template <class Silent, class Copy>
  Proposals Propose(const Silent& silent, const Copy& copy) const {
    Proposals proposals;
    for (std::uint32_t i = 0; i < view_.buckets.size(); ++i) {
      const Configuration& configuration = view_.buckets[i];
      Proposal proposal{
          .bucket = i, .configuration_version = configuration.version, .proposer = self_};
      const auto is_gone = [&](const ServerId& server) {
        return silent(server) ||
               std::find(view_.dead.begin(), view_.dead.end(), server) != view_.dead.end();
      };
      if (configuration.primary != self_) {
        proposal.released = configuration.successor == self_ && !is_gone(configuration.primary);
        if (configuration.Has(self_) && (is_gone(configuration.primary) || proposal.released)) {
          proposals.proposals.push_back(proposal);
        }
        continue;
      }
      for (const ServerId& member : configuration.replicas) {
        if (member != self_ && (is_gone(member) || configuration.departing == member)) {
          proposal.kind = Proposal::Kind::kDrop;
          proposal.subject = member;
        }
      }
      if (proposal.kind == Proposal::Kind::kPromote && configuration.learner &&
          copy(i, *configuration.learner)) {
        proposal.kind = Proposal::Kind::kAdd;
        proposal.subject = *configuration.learner;
      }
      if (proposal.kind != Proposal::Kind::kPromote) {
        proposals.proposals.push_back(proposal);
      }
    }
    return proposals;
  }

  /// Its primary has copied the bucket to it.
  void Receive(BucketId bucket) { held_.insert(bucket); }
  [[nodiscard]] bool Holds(BucketId bucket) const { return held_.contains(bucket); }

  /// Stores what it is primary of.
  SnapshotTaken Take(const TakeSnapshot& take) {
    SnapshotTaken taken{.snapshot = take.snapshot, .ok = true, .error = "", .buckets = {}};
    std::erase_if(disk_.snapshots, [&](const auto& entry) {
      return entry.first < take.keep_from &&
             std::find(take.keep.begin(), take.keep.end(), entry.first) == take.keep.end();
    });
    for (std::uint32_t i = 0; i < view_.buckets.size(); ++i) {
      const Configuration& configuration = view_.buckets[i];
      if (configuration.primary == self_) {
        disk_.snapshots[take.snapshot].insert(i);
        taken.buckets.push_back({.bucket = i,
                                 .configuration_version = configuration.version,
                                 .generation = configuration.generation});
      }
    }
    return taken;
  }

 private:
  // What it holds now is no longer what it found.
  void Touch(BucketId bucket) {
    std::erase_if(stored_.buckets, [&](const StoredBucket& each) { return each.bucket == bucket; });
    disk_.buckets.erase(bucket);
  }

  // Whether the bucket is there: only a snapshot may be gone.
  bool Load(BucketId bucket, const Configuration& configuration) {
    if (Holds(bucket)) {
      return true;
    }
    if (configuration.created && configuration.restored_snapshot != 0) {
      if (!disk_.snapshots[configuration.restored_snapshot].contains(bucket)) {
        EXPECT_TRUE(disk_.lost_snapshots) << "bucket " << bucket << " of snapshot "
                                          << configuration.restored_snapshot << " is gone";
        return false;
      }
    } else if (configuration.created) {
      EXPECT_TRUE(found_.contains(bucket)) << "bucket " << bucket << " of " << ToString(self_)
                                           << " is neither in memory nor was it on disk";
    }
    held_.insert(bucket);
    return true;
  }

  const ServerId self_;
  ServerDisk& disk_;
  StoredBuckets stored_;
  const std::set<std::uint32_t> found_ = [this] {
    std::set<std::uint32_t> found;
    for (const auto& [bucket, generation] : disk_.buckets) {
      found.insert(bucket);
    }
    return found;
  }();
  std::set<std::uint32_t> held_;
  Membership view_;
};

/// Compares every stored state with the one before: configurations change only as the protocol
/// allows.
class RecordChecker {
 public:
  /// `lives`: whether the process runs. Call it with each state that is stored.
  template <class Lives>
  void Check(const std::vector<Configuration>& configurations,
             const std::vector<ServerId>& dead,
             const Lives& lives) {
    for (const ServerId& server : dead) {
      EXPECT_FALSE(lives(server)) << ToString(server) << " is alive";
    }
    for (std::size_t i = 0; i < configurations.size(); ++i) {
      const Configuration& now = configurations[i];
      EXPECT_TRUE(now.Has(now.primary));
      EXPECT_EQ(std::set(now.replicas.begin(), now.replicas.end()).size(), now.replicas.size());
      if (i < last_.size()) {
        SCOPED_TRACE("bucket " + std::to_string(i));
        Compare(last_[i], now, lives);
      }
    }
    last_ = configurations;
  }

 private:
  template <class Lives>
  static void Compare(const Configuration& before, const Configuration& now, const Lives& lives) {
    EXPECT_TRUE(now.created || !before.created || now.generation > before.generation);
    if (now.version == before.version) {
      EXPECT_EQ(now.primary, before.primary);
      EXPECT_EQ(now.replicas, before.replicas);
      EXPECT_EQ(now.generation, before.generation);
      return;
    }
    EXPECT_EQ(now.version, before.version + 1);
    if (now.generation != before.generation || !before.created) {
      EXPECT_GE(now.generation, before.generation + (before.created ? 1 : 0));
      EXPECT_LE(now.generation, before.generation + 1);
      EXPECT_TRUE(std::none_of(before.replicas.begin(), before.replicas.end(), lives));
      return;
    }
    EXPECT_TRUE(before.Has(now.primary));
    for (const ServerId& member : now.replicas) {
      if (!before.Has(member)) {
        EXPECT_EQ(member, before.learner);
      }
    }
  }

  std::vector<Configuration> last_;
};

}  // namespace adamant::controller
