#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/check.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"

namespace adamant::parameter_server {

/// The records of a benchmark's buckets, in place of a controller: what the servers propose for
/// them is done.
/// Threads: any.
class BucketRecords {
 public:
  void Hear(const v1::MemberMessage& message) {
    const MutexLock lock(mutex_);
    ready_ += message.buckets_ready().buckets_size();
    for (const v1::Proposal& proposal : message.proposals().proposals()) {
      v1::Configuration& record = *membership_.mutable_buckets(static_cast<int>(proposal.bucket()));
      ADAMANT_CHECK(proposal.kind() == v1::Proposal::ADD,
                    "no server is taken for lost; is the machine busy?");
      if (proposal.epoch() == record.epoch()) {
        record.set_epoch(record.epoch() + 1);
        record.clear_learner();
        *record.add_members() = proposal.subject();
        ++added_;
      }
    }
    changed_.NotifyAll();
  }

  /// The first server has each bucket alone.
  void Assign(std::vector<v1::Member> members, std::uint32_t buckets) {
    const MutexLock lock(mutex_);
    for (v1::Member& member : members) {
      *membership_.add_members() = std::move(member);
    }
    for (BucketId bucket = 0; bucket < buckets; ++bucket) {
      v1::Configuration& record = *membership_.add_buckets();
      record.set_epoch(1);
      record.set_generation(1);
      record.mutable_primary()->set_incarnation(1);
      record.add_members()->set_incarnation(1);
    }
  }

  void SetCreated() {
    const MutexLock lock(mutex_);
    for (v1::Configuration& record : *membership_.mutable_buckets()) {
      record.set_created(true);
    }
  }

  void SetLearner(std::uint32_t slot) {
    const MutexLock lock(mutex_);
    added_ = 0;
    for (v1::Configuration& record : *membership_.mutable_buckets()) {
      record.mutable_learner()->set_slot(slot);
      record.mutable_learner()->set_incarnation(1);
    }
  }

  v1::Membership Next() {
    const MutexLock lock(mutex_);
    membership_.set_version(membership_.version() + 1);
    return membership_;
  }

  void AwaitReady() {
    const MutexLock lock(mutex_);
    while (ready_ < membership_.buckets_size()) {
      changed_.Wait(mutex_);
    }
  }

  void AwaitAdded() {
    const MutexLock lock(mutex_);
    while (added_ < membership_.buckets_size()) {
      changed_.Wait(mutex_);
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  v1::Membership membership_ ABSL_GUARDED_BY(mutex_);
  int ready_ ABSL_GUARDED_BY(mutex_) = 0;
  int added_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace adamant::parameter_server
