#include "operator/control/status_codec.h"

#include "proto/adamant/v1/control.pb.h"
#include "services/common/codec/buckets.h"

namespace adamant::control {
namespace {

using controller::Role;

void EncodeFailover(const controller::FailoverReport& failover, v1::FailoverStatus& encoded) {
  encoded.set_bucket(failover.bucket);
  encoded.set_epoch(failover.configuration_version);
  codec::Encode(failover.times, *encoded.mutable_times());
  encoded.set_catch_up_seconds(failover.catch_up_seconds);
  encoded.set_seconds_ago(failover.seconds_ago);
  encoded.set_failovers(failover.failovers);
  encoded.set_restores(failover.restores);
}

controller::FailoverReport DecodeFailover(const v1::FailoverStatus& failover) {
  return {.bucket = failover.bucket(),
          .configuration_version = failover.epoch(),
          .times = codec::Decode(failover.times()),
          .catch_up_seconds = failover.catch_up_seconds(),
          .seconds_ago = failover.seconds_ago(),
          .failovers = failover.failovers(),
          .restores = failover.restores()};
}

void EncodeBucket(const controller::BucketStatus& bucket, v1::JobStatus& status) {
  v1::BucketStatus& added = *status.add_buckets();
  added.set_bucket(bucket.bucket);
  added.set_state(bucket.state);
  codec::Encode(bucket.configuration, *added.mutable_record());
  added.set_committed(bucket.committed);
  added.set_lag(bucket.lag);
  added.set_rolled_back(bucket.rolled_back);
}

// Those that need attention first: a job may have more buckets than an answer can hold.
void EncodeBuckets(const controller::JobReport& report, v1::JobStatus& status) {
  for (const bool ready : {false, true}) {
    for (const controller::BucketStatus& bucket : report.buckets) {
      if ((bucket.state == "Ready") == ready && status.buckets_size() < kMostBuckets) {
        EncodeBucket(bucket, status);
      }
    }
  }
  v1::BucketSummary& summary = *status.mutable_bucket_summary();
  summary.mutable_states()->insert(report.bucket_summary.states.begin(),
                                   report.bucket_summary.states.end());
  summary.set_largest_epoch(report.bucket_summary.largest_version);
  summary.set_largest_lag(report.bucket_summary.largest_lag);
  summary.set_rolled_back(report.bucket_summary.rolled_back);
  summary.set_rolled_back_buckets(report.bucket_summary.rolled_back_buckets);
}

controller::BucketSummary DecodeSummary(const v1::BucketSummary& summary) {
  return {.states = {summary.states().begin(), summary.states().end()},
          .largest_version = summary.largest_epoch(),
          .largest_lag = summary.largest_lag(),
          .rolled_back = summary.rolled_back(),
          .rolled_back_buckets = summary.rolled_back_buckets()};
}

void EncodeAttempt(const controller::JobReport& report, v1::JobStatus& status) {
  status.set_attempt(report.attempt);
  status.set_rate_factor(report.rate_factor);
  status.set_divergence(report.divergence);
  status.set_undone_updates(report.undone_updates);
  status.set_undone_examples(report.undone_examples);
  status.set_updates_lost(report.updates_lost);
  status.set_updates_awaited(report.updates_awaited);
  status.set_batches_of_others(report.batches_of_others);
}

// A controller of before says nothing of attempts: it is at the first.
void DecodeAttempt(const v1::JobStatus& status, controller::JobReport& report) {
  if (status.attempt() > 0) {
    report.attempt = status.attempt();
    report.rate_factor = status.rate_factor();
  }
  report.divergence = status.divergence();
  report.undone_updates = status.undone_updates();
  report.undone_examples = status.undone_examples();
  report.updates_lost = status.updates_lost();
  report.updates_awaited = status.updates_awaited();
  report.batches_of_others = status.batches_of_others();
}

}  // namespace

v1::JobStatus Encode(const controller::JobReport& report) {
  v1::JobStatus status;
  status.set_name(report.name);
  status.set_term(report.term);
  status.set_phase(std::string(controller::PhaseName(report.phase)));
  status.set_epoch(report.epoch);
  status.set_epochs(report.epochs);
  status.set_counted_examples(report.counted_examples);
  status.set_total_examples(report.total_examples);
  status.set_examples_per_second(report.examples_per_second);
  status.set_training_loss(report.training_loss);
  status.set_accuracy(report.accuracy);
  status.set_restarts(report.restarts);
  status.set_message(report.message);
  for (const auto& member : report.members) {
    v1::MemberStatus& added = *status.add_members();
    added.set_role(static_cast<v1::Role>(member.id.role));
    added.set_slot(member.id.slot);
    added.set_incarnation(member.incarnation);
    added.set_state(member.state);
    added.set_metrics_address(member.metrics_address);
    added.set_buckets(member.buckets);
    added.set_copies(member.copies);
    added.set_oldest_unflushed_seconds(member.oldest_unflushed_seconds);
    added.set_address(member.address);
    added.set_alarm(member.alarm);
    added.set_silent_seconds(member.silent_seconds);
  }
  EncodeBuckets(report, status);
  if (report.last_failover) {
    EncodeFailover(*report.last_failover, *status.mutable_last_failover());
  }
  status.set_checkpoint(report.checkpoint);
  status.set_checkpoint_held_seconds(report.checkpoint_held_seconds);
  EncodeAttempt(report, status);
  return status;
}

controller::JobReport Decode(const v1::JobStatus& status) {
  controller::JobReport report{.name = status.name(),
                               .term = status.term(),
                               .epoch = status.epoch(),
                               .epochs = status.epochs(),
                               .counted_examples = status.counted_examples(),
                               .total_examples = status.total_examples(),
                               .examples_per_second = status.examples_per_second(),
                               .training_loss = status.training_loss(),
                               .accuracy = status.accuracy(),
                               .restarts = status.restarts(),
                               .message = status.message(),
                               .members = {}};
  for (int phase = 0; phase <= static_cast<int>(controller::Phase::kSuspended); ++phase) {
    if (controller::PhaseName(static_cast<controller::Phase>(phase)) == status.phase()) {
      report.phase = static_cast<controller::Phase>(phase);
    }
  }
  for (const v1::MemberStatus& member : status.members()) {
    report.members.push_back(
        {.id = {.role = static_cast<Role>(member.role()), .slot = member.slot()},
         .incarnation = member.incarnation(),
         .state = member.state(),
         .metrics_address = member.metrics_address(),
         .buckets = member.buckets(),
         .copies = member.copies(),
         .oldest_unflushed_seconds = member.oldest_unflushed_seconds(),
         .address = member.address(),
         .alarm = member.alarm(),
         .silent_seconds = member.silent_seconds()});
  }
  for (const v1::BucketStatus& bucket : status.buckets()) {
    report.buckets.push_back({.bucket = bucket.bucket(),
                              .state = bucket.state(),
                              .configuration = codec::Decode(bucket.record()),
                              .committed = bucket.committed(),
                              .lag = bucket.lag(),
                              .rolled_back = bucket.rolled_back()});
  }
  report.bucket_summary = DecodeSummary(status.bucket_summary());
  if (status.has_last_failover()) {
    report.last_failover = DecodeFailover(status.last_failover());
  }
  report.checkpoint = status.checkpoint();
  report.checkpoint_held_seconds = status.checkpoint_held_seconds();
  DecodeAttempt(status, report);
  return report;
}

}  // namespace adamant::control
