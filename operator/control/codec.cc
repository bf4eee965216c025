#include "operator/control/codec.h"

#include <cmath>
#include <type_traits>
#include <variant>

#include "operator/control/record_codec.h"
#include "operator/core/state/state.h"
#include "proto/adamant/v1/control.pb.h"

namespace adamant::control {
namespace {

using controller::Role;

constexpr std::size_t kMostLayers = 1024;  // whose dead units are heard of

// What is not finite would stay in every sum that it is added to.
double Finite(double value) { return std::isfinite(value) ? value : 0; }

controller::Join DecodeJoin(const v1::Join& join) {
  return {.format_version = join.format_version(),
          .id = {.role = static_cast<Role>(join.role()), .slot = join.slot()},
          .uid = join.uid(),
          .address = join.address(),
          .metrics_address = join.metrics_address(),
          .incarnation = join.incarnation(),
          .replication_address = join.replication_address(),
          .node = join.node(),
          .zone = join.zone(),
          .generation = join.generation(),
          .pod_uid = join.pod_uid()};
}

controller::DataServerProgress DecodeProgress(const v1::DataServerProgress& server) {
  controller::DataServerProgress decoded{.epoch = server.epoch(),
                                         .counted_examples = server.counted_examples(),
                                         .total_examples = server.total_examples(),
                                         .dealt_examples = server.dealt_examples(),
                                         .retrained_examples = server.retrained_examples(),
                                         .job_examples = server.job_examples(),
                                         .training_examples = server.training_examples(),
                                         .decided_epoch = server.decided_epoch(),
                                         .unattended = {},
                                         .data_files = {}};
  for (const v1::DataFile& file : server.data_files()) {
    decoded.data_files.push_back({.field = file.field(), .fingerprint = file.fingerprint()});
  }
  for (const v1::UnattendedEpoch& epoch : server.unattended()) {
    decoded.unattended.push_back({.epoch = epoch.epoch(),
                                  .counted = epoch.counted(),
                                  .left = epoch.left(),
                                  .retrained = epoch.retrained()});
  }
  return decoded;
}

controller::ParameterServerProgress DecodeProgress(const v1::ParameterServerProgress& server) {
  controller::ParameterServerProgress decoded{
      .updates_applied = server.updates_applied(),
      .dirty_bytes = server.dirty_bytes(),
      .oldest_unflushed_seconds = Finite(server.oldest_unflushed_seconds()),
      .flushes = server.flushes(),
      .alarm = server.alarm(),
      .damages = {server.damages().begin(), server.damages().end()},
      .buckets = {}};
  for (const v1::BucketProgress& bucket : server.buckets()) {
    decoded.buckets.push_back({.bucket = bucket.bucket(),
                               .epoch = bucket.epoch(),
                               .committed = bucket.committed(),
                               .lag = bucket.lag(),
                               .updates = bucket.updates(),
                               .serving = bucket.serving()});
  }
  return decoded;
}

controller::WorkerProgress DecodeProgress(const v1::WorkerProgress& worker) {
  controller::WorkerProgress decoded{
      .trained_examples = worker.trained_examples(),
      .loss_sum = worker.loss_sum(),
      .correct = worker.correct(),
      .pushes_acknowledged = worker.pushes_acknowledged(),
      .pushes_refused = worker.pushes_refused(),
      .updates_lost = worker.updates_lost(),
      .staleness_counts = {worker.staleness_counts().begin(), worker.staleness_counts().end()},
      .epoch = worker.epoch(),
      .updates_resent = worker.updates_resent(),
      .retained_bytes = worker.retained_bytes(),
      .held_seconds = Finite(worker.held_seconds()),
      .grown_layer = worker.grown_layer(),
      .weight_growth = Finite(worker.weight_growth())};
  for (const std::uint64_t count : worker.batches_of_others()) {
    if (decoded.batches_of_others.size() < controller::kStalenessBins) {
      decoded.batches_of_others.push_back(count);
    }
  }
  for (const v1::DeadUnits& layer : worker.dead_units()) {
    if (decoded.dead_units.size() < kMostLayers) {
      decoded.dead_units.push_back(
          {.layer = layer.layer(), .units = layer.units(), .dead = layer.dead()});
    }
  }
  return decoded;
}

controller::Heartbeat DecodeHeartbeat(const v1::Heartbeat& heartbeat) {
  controller::Heartbeat decoded;
  decoded.busy_seconds = Finite(heartbeat.busy_seconds());
  if (heartbeat.has_worker() && std::isfinite(heartbeat.worker().loss_sum())) {
    decoded.progress = DecodeProgress(heartbeat.worker());
  } else if (heartbeat.has_data_server()) {
    decoded.progress = DecodeProgress(heartbeat.data_server());
  } else if (heartbeat.has_parameter_server()) {
    decoded.progress = DecodeProgress(heartbeat.parameter_server());
  }
  return decoded;
}

controller::BucketsReady DecodeBuckets(const v1::BucketsReady& ready) {
  controller::BucketsReady decoded;
  for (const v1::BucketState& bucket : ready.buckets()) {
    decoded.buckets.push_back({.bucket = bucket.bucket(),
                               .epoch = bucket.epoch(),
                               .lost = bucket.lost(),
                               .detail = bucket.detail(),
                               .failover = std::nullopt,
                               .updates = bucket.updates()});
    if (bucket.has_failover()) {
      decoded.buckets.back().failover = DecodeTimes(bucket.failover());
    }
  }
  return decoded;
}

controller::StoredBuckets DecodeStored(const v1::StoredBuckets& stored) {
  controller::StoredBuckets decoded{.previous_incarnation = stored.previous_incarnation(),
                                    .buckets = {}};
  for (const v1::StoredBucket& bucket : stored.buckets()) {
    decoded.buckets.push_back({.bucket = bucket.bucket(),
                               .generation = bucket.generation(),
                               .updates = bucket.updates(),
                               .complete = bucket.complete(),
                               .detail = bucket.detail(),
                               .log_epoch = bucket.log_epoch(),
                               .log_lsn = bucket.log_lsn()});
  }
  return decoded;
}

std::optional<controller::Proposal::Kind> DecodeKind(v1::Proposal::Kind kind) {
  switch (kind) {
    case v1::Proposal::TAKE_OVER:
      return controller::Proposal::Kind::kTakeOver;
    case v1::Proposal::DROP:
      return controller::Proposal::Kind::kDrop;
    case v1::Proposal::ADD:
      return controller::Proposal::Kind::kAdd;
    default:
      return std::nullopt;
  }
}

// Without proposals of a kind that does not exist.
controller::Proposals DecodeProposals(const v1::Proposals& proposals) {
  controller::Proposals decoded;
  for (const v1::Proposal& proposal : proposals.proposals()) {
    if (const auto kind = DecodeKind(proposal.kind())) {
      decoded.proposals.push_back({.bucket = proposal.bucket(),
                                   .epoch = proposal.epoch(),
                                   .kind = *kind,
                                   .proposer = DecodeHolder(proposal.proposer()),
                                   .subject = DecodeHolder(proposal.subject()),
                                   .last_lsn = proposal.last_lsn(),
                                   .released = proposal.released()});
    }
  }
  return decoded;
}

controller::SnapshotTaken DecodeSnapshot(const v1::SnapshotTaken& taken) {
  controller::SnapshotTaken decoded{.snapshot = taken.snapshot(),
                                    .ok = taken.ok(),
                                    .error = taken.error(),
                                    .buckets = {},
                                    .disk_full = taken.disk_full()};
  for (const v1::SnapshotBucket& bucket : taken.buckets()) {
    decoded.buckets.push_back({.bucket = bucket.bucket(),
                               .epoch = bucket.epoch(),
                               .generation = bucket.generation(),
                               .updates = bucket.updates(),
                               .checksum = bucket.checksum()});
  }
  return decoded;
}

void Fill(const controller::Welcome& welcome, v1::ControllerMessage& message) {
  v1::Welcome& encoded = *message.mutable_welcome();
  encoded.set_training_examples(welcome.training_examples);
  encoded.set_term(welcome.term);
  encoded.set_incarnation(welcome.incarnation);
  encoded.set_job_uid(welcome.job_uid);
  encoded.set_attempt(welcome.attempt);
  for (const controller::DataFile& file : welcome.data_files) {
    v1::DataFile& added = *encoded.add_data_files();
    added.set_field(file.field);
    added.set_fingerprint(file.fingerprint);
  }
}

void Fill(const controller::Membership& view, v1::ControllerMessage& message) {
  v1::Membership& encoded = *message.mutable_membership();
  encoded.set_version(view.version);
  for (const controller::Member& member : view.members) {
    v1::Member& added = *encoded.add_members();
    added.set_role(static_cast<v1::Role>(member.id.role));
    added.set_slot(member.id.slot);
    added.set_incarnation(member.incarnation);
    added.set_address(member.address);
    added.set_replication_address(member.replication_address);
  }
  for (const controller::Bucket& bucket : view.buckets) {
    EncodeRecord(bucket, *encoded.add_buckets());
  }
  for (const controller::Holder& holder : view.dead) {
    EncodeHolder(holder, *encoded.add_dead());
  }
  encoded.mutable_part_owner()->Add(view.part_owner.begin(), view.part_owner.end());
}

void Fill(const controller::OpenEpoch& open, v1::ControllerMessage& message) {
  message.mutable_open_epoch()->set_epoch(open.epoch);
}

void Fill(const controller::CloseEpoch& close, v1::ControllerMessage& message) {
  message.mutable_close_epoch()->set_epoch(close.epoch);
}

void Fill(const controller::FlushWorker& flush, v1::ControllerMessage& message) {
  message.mutable_flush_worker()->set_epoch(flush.epoch);
}

void Fill(const controller::TakeSnapshot& take, v1::ControllerMessage& message) {
  v1::TakeSnapshot& encoded = *message.mutable_take_snapshot();
  encoded.set_snapshot(take.snapshot);
  encoded.set_keep_from(take.keep_from);
  encoded.mutable_keep()->Add(take.keep.begin(), take.keep.end());
  encoded.mutable_writers_from()->Add(take.writers_from.begin(), take.writers_from.end());
  encoded.mutable_generations()->Add(take.generations.begin(), take.generations.end());
}

void Fill(const controller::Evaluate& evaluate, v1::ControllerMessage& message) {
  message.mutable_evaluate()->set_epoch(evaluate.epoch);
  message.mutable_evaluate()->set_snapshot(evaluate.snapshot);
}

void Fill(const controller::HoldPushes& hold, v1::ControllerMessage& message) {
  message.mutable_hold_pushes()->set_checkpoint(hold.checkpoint);
}

void Fill(const controller::ReleasePushes& release, v1::ControllerMessage& message) {
  message.mutable_release_pushes()->set_checkpoint(release.checkpoint);
}

void Fill(const controller::Stop& stop, v1::ControllerMessage& message) {
  message.mutable_stop()->set_reason(stop.reason);
}

void Fill(const controller::Refused& refused, v1::ControllerMessage& message) {
  message.mutable_refused()->set_reason(refused.reason);
}

}  // namespace

std::optional<controller::MemberMessage> Decode(const v1::MemberMessage& message) {
  switch (message.kind_case()) {
    case v1::MemberMessage::kJoin:
      if (message.join().role() < v1::DATA_SERVER || message.join().role() > v1::WORKER) {
        return std::nullopt;
      }
      return DecodeJoin(message.join());
    case v1::MemberMessage::kHeartbeat:
      return DecodeHeartbeat(message.heartbeat());
    case v1::MemberMessage::kBucketsReady:
      return DecodeBuckets(message.buckets_ready());
    case v1::MemberMessage::kEpochEnded:
      return controller::EpochEnded{message.epoch_ended().epoch()};
    case v1::MemberMessage::kPartClosed: {
      const v1::PartClosed& closed = message.part_closed();
      return controller::PartClosed{.epoch = closed.epoch(),
                                    .part = closed.part(),
                                    .counted_examples = closed.counted_examples(),
                                    .left_examples = closed.left_examples(),
                                    .retrained_examples = closed.retrained_examples()};
    }
    case v1::MemberMessage::kWorkerFlushed:
      return controller::WorkerFlushed{message.worker_flushed().epoch()};
    case v1::MemberMessage::kSnapshotTaken:
      return DecodeSnapshot(message.snapshot_taken());
    case v1::MemberMessage::kEvaluated: {
      const v1::Evaluated& evaluated = message.evaluated();
      return controller::Evaluated{.epoch = evaluated.epoch(),
                                   .snapshot = evaluated.snapshot(),
                                   .examples = evaluated.examples(),
                                   .correct = evaluated.correct(),
                                   .loss_sum = evaluated.loss_sum(),
                                   .most_frequent = evaluated.most_frequent()};
    }
    case v1::MemberMessage::kFailure:
      return controller::Failure{.message = message.failure().message(),
                                 .fatal = message.failure().fatal(),
                                 .invalid = message.failure().invalid(),
                                 .diverged = message.failure().diverged()};
    case v1::MemberMessage::kLeaving:
      return controller::Leaving{};
    case v1::MemberMessage::kStoredBuckets:
      return DecodeStored(message.stored_buckets());
    case v1::MemberMessage::kProposals:
      return DecodeProposals(message.proposals());
    case v1::MemberMessage::kPushesHeld:
      return controller::PushesHeld{.checkpoint = message.pushes_held().checkpoint(),
                                    .sequence = message.pushes_held().sequence()};
    case v1::MemberMessage::kDraining:
      return controller::Draining{};
    case v1::MemberMessage::kLoading:
      return controller::Loading{message.loading().what()};
    case v1::MemberMessage::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

v1::ControllerMessage Encode(const controller::ControllerMessage& message) {
  v1::ControllerMessage encoded;
  std::visit([&](const auto& kind) { Fill(kind, encoded); }, message);
  return encoded;
}

}  // namespace adamant::control
