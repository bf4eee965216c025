#include "services/common/codec/buckets.h"

#include <optional>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/codec/finite.h"

namespace adamant::codec {
namespace {

using Kind = protocol::Proposal::Kind;

static_assert(static_cast<int>(Kind::kPromote) == v1::Proposal::PROMOTE);
static_assert(static_cast<int>(Kind::kDrop) == v1::Proposal::DROP);
static_assert(static_cast<int>(Kind::kAdd) == v1::Proposal::ADD);

std::optional<protocol::ServerId> Advised(bool given, const v1::ServerId& server) {
  return given ? std::optional(codec::Decode(server)) : std::nullopt;
}

}  // namespace

protocol::ServerId Decode(const v1::ServerId& message) {
  return {.slot = message.slot(), .incarnation = message.incarnation()};
}

void Encode(const protocol::ServerId& server, v1::ServerId& message) {
  message.set_slot(server.slot);
  message.set_incarnation(server.incarnation);
}

protocol::Configuration Decode(const v1::Configuration& message) {
  protocol::Configuration bucket{.version = message.epoch(),
                                 .generation = message.generation(),
                                 .primary = Decode(message.primary()),
                                 .replicas = {},
                                 .created = message.created(),
                                 .learner = Advised(message.has_learner(), message.learner()),
                                 .departing = Advised(message.has_leaver(), message.leaver()),
                                 .successor = Advised(message.has_heir(), message.heir()),
                                 .restored_snapshot = message.restored_snapshot()};
  for (const v1::ServerId& member : message.members()) {
    bucket.replicas.push_back(Decode(member));
  }
  return bucket;
}

void Encode(const protocol::Configuration& bucket, v1::Configuration& message) {
  message.set_epoch(bucket.version);
  message.set_generation(bucket.generation);
  Encode(bucket.primary, *message.mutable_primary());
  for (const protocol::ServerId& member : bucket.replicas) {
    Encode(member, *message.add_members());
  }
  message.set_created(bucket.created);
  if (bucket.learner) {
    Encode(*bucket.learner, *message.mutable_learner());
  }
  if (bucket.departing) {
    Encode(*bucket.departing, *message.mutable_leaver());
  }
  if (bucket.successor) {
    Encode(*bucket.successor, *message.mutable_heir());
  }
  message.set_restored_snapshot(bucket.restored_snapshot);
}

protocol::Proposal Decode(const v1::Proposal& message) {
  return {.bucket = message.bucket(),
          .configuration_version = message.epoch(),
          .kind = static_cast<Kind>(message.kind()),
          .proposer = Decode(message.proposer()),
          .subject = Decode(message.subject()),
          .last_lsn = message.last_lsn(),
          .released = message.released()};
}

void Encode(const protocol::Proposal& proposal, v1::Proposal& message) {
  message.set_bucket(proposal.bucket);
  message.set_epoch(proposal.configuration_version);
  message.set_kind(static_cast<v1::Proposal::Kind>(proposal.kind));
  Encode(proposal.proposer, *message.mutable_proposer());
  Encode(proposal.subject, *message.mutable_subject());
  message.set_last_lsn(proposal.last_lsn);
  message.set_released(proposal.released);
}

protocol::StoredBucket Decode(const v1::StoredBucket& message) {
  return {.bucket = message.bucket(),
          .generation = message.generation(),
          .updates = message.updates(),
          .complete = message.complete(),
          .detail = message.detail(),
          .log_version = message.log_epoch(),
          .log_lsn = message.log_lsn()};
}

void Encode(const protocol::StoredBucket& bucket, v1::StoredBucket& message) {
  message.set_bucket(bucket.bucket);
  message.set_generation(bucket.generation);
  message.set_updates(bucket.updates);
  message.set_complete(bucket.complete);
  message.set_detail(bucket.detail);
  message.set_log_epoch(bucket.log_version);
  message.set_log_lsn(bucket.log_lsn);
}

protocol::BucketProgress Decode(const v1::BucketProgress& message) {
  return {.bucket = message.bucket(),
          .configuration_version = message.epoch(),
          .committed = message.committed(),
          .lag = message.lag(),
          .updates = message.updates(),
          .serving = message.serving()};
}

void Encode(const protocol::BucketProgress& bucket, v1::BucketProgress& message) {
  message.set_bucket(bucket.bucket);
  message.set_epoch(bucket.configuration_version);
  message.set_committed(bucket.committed);
  message.set_lag(bucket.lag);
  message.set_updates(bucket.updates);
  message.set_serving(bucket.serving);
}

protocol::BucketState Decode(const v1::BucketState& message) {
  protocol::BucketState state{.bucket = message.bucket(),
                              .configuration_version = message.epoch(),
                              .lost = message.lost(),
                              .detail = message.detail(),
                              .failover = std::nullopt,
                              .updates = message.updates()};
  if (message.has_failover()) {
    state.failover = Decode(message.failover());
  }
  return state;
}

void Encode(const protocol::BucketState& state, v1::BucketState& message) {
  message.set_bucket(state.bucket);
  message.set_epoch(state.configuration_version);
  message.set_lost(state.lost);
  message.set_detail(state.detail);
  message.set_updates(state.updates);
  if (state.failover) {
    Encode(*state.failover, *message.mutable_failover());
  }
}

protocol::SnapshotBucket Decode(const v1::SnapshotBucket& message) {
  return {.bucket = message.bucket(),
          .configuration_version = message.epoch(),
          .generation = message.generation(),
          .updates = message.updates(),
          .checksum = message.checksum()};
}

void Encode(const protocol::SnapshotBucket& bucket, v1::SnapshotBucket& message) {
  message.set_bucket(bucket.bucket);
  message.set_epoch(bucket.configuration_version);
  message.set_generation(bucket.generation);
  message.set_updates(bucket.updates);
  message.set_checksum(bucket.checksum);
}

protocol::Proposals Decode(const v1::Proposals& message) {
  protocol::Proposals proposals;
  for (const v1::Proposal& proposal : message.proposals()) {
    if (v1::Proposal::Kind_IsValid(proposal.kind())) {
      proposals.proposals.push_back(Decode(proposal));
    }
  }
  return proposals;
}

void Encode(const protocol::Proposals& proposals, v1::Proposals& message) {
  for (const protocol::Proposal& proposal : proposals.proposals) {
    Encode(proposal, *message.add_proposals());
  }
}

protocol::StoredBuckets Decode(const v1::StoredBuckets& message) {
  protocol::StoredBuckets stored{.previous_incarnation = message.previous_incarnation(),
                                 .buckets = {}};
  for (const v1::StoredBucket& bucket : message.buckets()) {
    stored.buckets.push_back(Decode(bucket));
  }
  return stored;
}

void Encode(const protocol::StoredBuckets& stored, v1::StoredBuckets& message) {
  message.set_previous_incarnation(stored.previous_incarnation);
  for (const protocol::StoredBucket& bucket : stored.buckets) {
    Encode(bucket, *message.add_buckets());
  }
}

protocol::ParameterServerProgress Decode(const v1::ParameterServerProgress& message) {
  protocol::ParameterServerProgress progress{
      .updates_applied = message.updates_applied(),
      .dirty_bytes = message.dirty_bytes(),
      .oldest_unflushed_seconds = Finite(message.oldest_unflushed_seconds()),
      .flushes = message.flushes(),
      .alarm = message.alarm(),
      .damages = {message.damages().begin(), message.damages().end()},
      .buckets = {}};
  for (const v1::BucketProgress& bucket : message.buckets()) {
    progress.buckets.push_back(Decode(bucket));
  }
  return progress;
}

void Encode(const protocol::ParameterServerProgress& progress,
            v1::ParameterServerProgress& message) {
  message.set_updates_applied(progress.updates_applied);
  message.set_dirty_bytes(progress.dirty_bytes);
  message.set_oldest_unflushed_seconds(progress.oldest_unflushed_seconds);
  message.set_flushes(progress.flushes);
  message.set_alarm(progress.alarm);
  message.mutable_damages()->Assign(progress.damages.begin(), progress.damages.end());
  for (const protocol::BucketProgress& bucket : progress.buckets) {
    Encode(bucket, *message.add_buckets());
  }
}

protocol::FailoverTimes Decode(const v1::FailoverTimes& message) {
  return {.detect_seconds = message.detect_seconds(),
          .replace_seconds = message.replace_seconds(),
          .reconcile_seconds = message.reconcile_seconds()};
}

void Encode(const protocol::FailoverTimes& times, v1::FailoverTimes& message) {
  message.set_detect_seconds(times.detect_seconds);
  message.set_replace_seconds(times.replace_seconds);
  message.set_reconcile_seconds(times.reconcile_seconds);
}

protocol::BucketsReady Decode(const v1::BucketsReady& message) {
  protocol::BucketsReady ready;
  for (const v1::BucketState& state : message.buckets()) {
    ready.buckets.push_back(Decode(state));
  }
  return ready;
}

void Encode(const protocol::BucketsReady& ready, v1::BucketsReady& message) {
  for (const protocol::BucketState& state : ready.buckets) {
    Encode(state, *message.add_buckets());
  }
}

protocol::SnapshotTaken Decode(const v1::SnapshotTaken& message) {
  protocol::SnapshotTaken taken{.snapshot = message.snapshot(),
                                .ok = message.ok(),
                                .error = message.error(),
                                .buckets = {},
                                .disk_full = message.disk_full()};
  for (const v1::SnapshotBucket& bucket : message.buckets()) {
    taken.buckets.push_back(Decode(bucket));
  }
  return taken;
}

void Encode(const protocol::SnapshotTaken& taken, v1::SnapshotTaken& message) {
  message.set_snapshot(taken.snapshot);
  message.set_ok(taken.ok);
  message.set_error(taken.error);
  for (const protocol::SnapshotBucket& bucket : taken.buckets) {
    Encode(bucket, *message.add_buckets());
  }
  message.set_disk_full(taken.disk_full);
}

protocol::TakeSnapshot Decode(const v1::TakeSnapshot& message) {
  return {.snapshot = message.snapshot(),
          .keep_from = message.keep_from(),
          .keep = {message.keep().begin(), message.keep().end()},
          .writers_from = {message.writers_from().begin(), message.writers_from().end()},
          .generations = {message.generations().begin(), message.generations().end()}};
}

void Encode(const protocol::TakeSnapshot& take, v1::TakeSnapshot& message) {
  message.set_snapshot(take.snapshot);
  message.set_keep_from(take.keep_from);
  message.mutable_keep()->Assign(take.keep.begin(), take.keep.end());
  message.mutable_writers_from()->Assign(take.writers_from.begin(), take.writers_from.end());
  message.mutable_generations()->Assign(take.generations.begin(), take.generations.end());
}

}  // namespace adamant::codec
