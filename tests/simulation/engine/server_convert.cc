#include "tests/simulation/engine/server_convert.h"

#include <optional>

#include "services/common/base/clock.h"
#include "services/common/base/seconds.h"

namespace adamant::simulation {
namespace {

template <class To, class From>
To HolderTo(const From& holder) {
  return {.slot = holder.slot, .incarnation = holder.incarnation};
}

std::optional<parameter_server::Holder> Advised(const std::optional<controller::Holder>& holder) {
  return holder.has_value() ? std::optional(HolderTo<parameter_server::Holder>(*holder))
                            : std::nullopt;
}

}  // namespace

std::vector<parameter_server::Configuration> ConfigurationsOf(const controller::Membership& view) {
  std::vector<parameter_server::Configuration> configurations;
  for (const controller::Bucket& bucket : view.buckets) {
    parameter_server::Configuration& configuration = configurations.emplace_back();
    configuration.epoch = bucket.epoch;
    configuration.generation = bucket.generation;
    configuration.primary = HolderTo<parameter_server::Holder>(bucket.primary);
    for (const controller::Holder& member : bucket.members) {
      configuration.members.push_back(HolderTo<parameter_server::Holder>(member));
    }
    configuration.created = bucket.created;
    configuration.learner = Advised(bucket.learner);
    configuration.leaver = Advised(bucket.leaver);
    configuration.heir = Advised(bucket.heir);
    configuration.restored_snapshot = bucket.restored_snapshot;
  }
  return configurations;
}

std::vector<parameter_server::Holder> DeadOf(const controller::Membership& view) {
  std::vector<parameter_server::Holder> dead;
  for (const controller::Holder& holder : view.dead) {
    dead.push_back(HolderTo<parameter_server::Holder>(holder));
  }
  return dead;
}

controller::Proposal ToController(const parameter_server::Proposal& proposal) {
  return {.bucket = proposal.bucket,
          .epoch = proposal.epoch,
          .kind = static_cast<controller::Proposal::Kind>(proposal.kind),
          .proposer = HolderTo<controller::Holder>(proposal.proposer),
          .subject = HolderTo<controller::Holder>(proposal.subject),
          .last_lsn = proposal.last_lsn,
          .released = proposal.released};
}

controller::BucketState ToController(const parameter_server::BucketReport& report) {
  controller::BucketState state{.bucket = report.bucket,
                                .epoch = report.epoch,
                                .lost = report.lost,
                                .detail = report.detail,
                                .failover = {},
                                .updates = report.updates};
  if (report.failover.replace.count() > 0) {
    state.failover = {.detect_seconds = Seconds(report.failover.detect),
                      .replace_seconds = Seconds(report.failover.replace),
                      .reconcile_seconds = Seconds(report.failover.reconcile)};
  }
  return state;
}

controller::StoredBuckets ToController(const parameter_server::StoredBuckets& stored) {
  controller::StoredBuckets message{.previous_incarnation = stored.previous_incarnation,
                                    .buckets = {}};
  for (const parameter_server::StoredBucket& bucket : stored.buckets) {
    message.buckets.push_back({.bucket = bucket.bucket,
                               .generation = bucket.generation,
                               .updates = bucket.updates,
                               .complete = bucket.complete,
                               .detail = bucket.detail,
                               .log_epoch = bucket.log_epoch,
                               .log_lsn = bucket.log_lsn});
  }
  return message;
}

controller::BucketProgress ToController(const parameter_server::BucketProgress& progress) {
  return {.bucket = progress.bucket,
          .epoch = progress.epoch,
          .committed = progress.committed,
          .lag = progress.lag,
          .updates = progress.updates,
          .serving = progress.serving};
}

controller::SnapshotBucket ToController(const parameter_server::SnapshotBucket& bucket) {
  return {.bucket = bucket.bucket,
          .epoch = bucket.epoch,
          .generation = bucket.generation,
          .updates = bucket.updates,
          .checksum = bucket.checksum};
}

}  // namespace adamant::simulation
