#pragma once

#include <gtest/gtest.h>

#include <string>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {

inline JobSettings ReplicatedJob() {
  JobSettings settings = SmallJob();
  settings.parameter_servers = 3;
  settings.buckets = 3;
  settings.copies = 2;
  return settings;
}

/// Three servers hold three buckets twice.
class ReplicationTest : public testing::Test {
 protected:
  explicit ReplicationTest(const JobSettings& settings = ReplicatedJob()) : job_(settings) {
    job_.Begin();
    job_.JoinAll();
    AddLearners();
  }

  /// Primaries add the learners that they are told of, until there are none.
  void AddLearners() {
    for (bool any = true; any;) {
      any = false;
      for (std::uint32_t i = 0; i < job_.state().buckets.size(); ++i) {
        const Configuration& configuration = job_.state().buckets[i];
        if (configuration.learner) {
          Tell(configuration.primary,
               {.bucket = i,
                .configuration_version = configuration.version,
                .kind = Proposal::Kind::kAdd,
                .proposer = configuration.primary,
                .subject = *configuration.learner});
          any = true;
        }
      }
    }
  }

  Harness::Actions Tell(ServerId by, const Proposal& proposal) {
    return job_.Tell({Role::kParameterServer, by.slot}, Proposals{{proposal}});
  }

  Harness::Actions Promote(BucketId bucket, ServerId by) {
    return Tell(by,
                {.bucket = bucket,
                 .configuration_version = configuration(bucket).version,
                 .proposer = by,
                 .last_lsn = 1});
  }

  /// The first bucket has taken as many.
  void TellOfHundredUpdates(std::uint32_t server) {
    Heartbeat heartbeat;
    heartbeat.progress =
        ParameterServerProgress{.buckets = {{.bucket = 0,
                                             .configuration_version = configuration(0).version,
                                             .committed = 9,
                                             .updates = 100,
                                             .serving = true}}};
    job_.Tell({Role::kParameterServer, server}, heartbeat);
  }

  [[nodiscard]] const Configuration& configuration(BucketId bucket) const {
    return job_.state().buckets[bucket];
  }
  [[nodiscard]] ServerId Secondary(BucketId bucket) const {
    const Configuration& of = configuration(bucket);
    return of.replicas[0] == of.primary ? of.replicas[1] : of.replicas[0];
  }
  [[nodiscard]] std::string StateOf(BucketId bucket) const {
    return job_.controller().Report().buckets[bucket].state;
  }

  Harness::Actions Drop(BucketId bucket, ServerId replica) {
    return Tell(configuration(bucket).primary,
                {.bucket = bucket,
                 .configuration_version = configuration(bucket).version,
                 .kind = Proposal::Kind::kDrop,
                 .proposer = configuration(bucket).primary,
                 .subject = replica});
  }

  Harness job_;
};

}  // namespace adamant::controller
