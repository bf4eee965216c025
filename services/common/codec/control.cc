#include "services/common/codec/control.h"

#include <cmath>
#include <variant>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/codec/buckets.h"
#include "services/common/codec/finite.h"
#include "services/common/codec/work.h"

namespace adamant::codec {
namespace {

using protocol::Role;

constexpr std::size_t kMostLayers = 1024;  // whose dead units are heard of

static_assert(static_cast<int>(Role::kDataServer) == v1::DATA_SERVER);
static_assert(static_cast<int>(Role::kParameterServer) == v1::PARAMETER_SERVER);
static_assert(static_cast<int>(Role::kWorker) == v1::WORKER);

bool IsRole(v1::Role role) { return role >= v1::DATA_SERVER && role <= v1::WORKER; }

protocol::Join DecodeJoin(const v1::Join& join) {
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

protocol::WorkerProgress DecodeProgress(const v1::WorkerProgress& worker) {
  protocol::WorkerProgress decoded{.trained_examples = worker.trained_examples(),
                                   .loss_sum = worker.loss_sum(),
                                   .correct = worker.correct(),
                                   .pushes_acknowledged = worker.pushes_acknowledged(),
                                   .pushes_refused = worker.pushes_refused(),
                                   .updates_lost = worker.updates_lost(),
                                   .update_staleness_counts = {worker.staleness_counts().begin(),
                                                               worker.staleness_counts().end()},
                                   .epoch = worker.epoch(),
                                   .updates_resent = worker.updates_resent(),
                                   .retained_bytes = worker.retained_bytes(),
                                   .held_seconds = Finite(worker.held_seconds()),
                                   .grown_layer = worker.grown_layer(),
                                   .weight_growth = Finite(worker.weight_growth())};
  for (const std::uint64_t count : worker.batches_of_others()) {
    if (decoded.batches_of_others.size() < protocol::kStalenessBins) {
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

void Fill(const protocol::WorkerProgress& progress, v1::WorkerProgress& worker) {
  worker.set_trained_examples(progress.trained_examples);
  worker.set_loss_sum(progress.loss_sum);
  worker.set_correct(progress.correct);
  worker.set_pushes_acknowledged(progress.pushes_acknowledged);
  worker.set_pushes_refused(progress.pushes_refused);
  worker.set_updates_lost(progress.updates_lost);
  worker.mutable_staleness_counts()->Assign(progress.update_staleness_counts.begin(),
                                            progress.update_staleness_counts.end());
  worker.set_epoch(progress.epoch);
  worker.set_updates_resent(progress.updates_resent);
  worker.set_retained_bytes(progress.retained_bytes);
  worker.set_held_seconds(progress.held_seconds);
  worker.mutable_batches_of_others()->Assign(progress.batches_of_others.begin(),
                                             progress.batches_of_others.end());
  for (const protocol::DeadUnits& found : progress.dead_units) {
    v1::DeadUnits& layer = *worker.add_dead_units();
    layer.set_layer(found.layer);
    layer.set_units(found.units);
    layer.set_dead(found.dead);
  }
  worker.set_grown_layer(progress.grown_layer);
  worker.set_weight_growth(progress.weight_growth);
}

protocol::Heartbeat DecodeHeartbeat(const v1::Heartbeat& heartbeat) {
  protocol::Heartbeat decoded;
  decoded.busy_seconds = Finite(heartbeat.busy_seconds());
  if (heartbeat.has_worker() && std::isfinite(heartbeat.worker().loss_sum())) {
    decoded.progress = DecodeProgress(heartbeat.worker());
  } else if (heartbeat.has_data_server()) {
    decoded.progress = Decode(heartbeat.data_server());
  } else if (heartbeat.has_parameter_server()) {
    decoded.progress = Decode(heartbeat.parameter_server());
  }
  return decoded;
}

void Fill(const protocol::Join& join, v1::MemberMessage& message) {
  v1::Join& encoded = *message.mutable_join();
  encoded.set_format_version(join.format_version);
  encoded.set_role(static_cast<v1::Role>(join.id.role));
  encoded.set_slot(join.id.slot);
  encoded.set_uid(join.uid);
  encoded.set_address(join.address);
  encoded.set_metrics_address(join.metrics_address);
  encoded.set_incarnation(join.incarnation);
  encoded.set_replication_address(join.replication_address);
  encoded.set_node(join.node);
  encoded.set_zone(join.zone);
  encoded.set_generation(join.generation);
  encoded.set_pod_uid(join.pod_uid);
}

void Fill(const protocol::Heartbeat& heartbeat, v1::MemberMessage& message) {
  v1::Heartbeat& encoded = *message.mutable_heartbeat();
  encoded.set_busy_seconds(heartbeat.busy_seconds);
  if (const auto* worker = std::get_if<protocol::WorkerProgress>(&heartbeat.progress)) {
    Fill(*worker, *encoded.mutable_worker());
  } else if (const auto* data = std::get_if<protocol::DataServerProgress>(&heartbeat.progress)) {
    Encode(*data, *encoded.mutable_data_server());
  } else if (const auto* parameters =
                 std::get_if<protocol::ParameterServerProgress>(&heartbeat.progress)) {
    Encode(*parameters, *encoded.mutable_parameter_server());
  }
}

void Fill(const protocol::BucketsReady& ready, v1::MemberMessage& message) {
  Encode(ready, *message.mutable_buckets_ready());
}

void Fill(const protocol::EpochEnded& ended, v1::MemberMessage& message) {
  message.mutable_epoch_ended()->set_epoch(ended.epoch);
}

void Fill(const protocol::PartClosed& closed, v1::MemberMessage& message) {
  Encode(closed, *message.mutable_part_closed());
}

void Fill(const protocol::WorkerFlushed& flushed, v1::MemberMessage& message) {
  message.mutable_worker_flushed()->set_epoch(flushed.epoch);
}

void Fill(const protocol::SnapshotTaken& taken, v1::MemberMessage& message) {
  Encode(taken, *message.mutable_snapshot_taken());
}

void Fill(const protocol::Evaluated& evaluated, v1::MemberMessage& message) {
  Encode(evaluated, *message.mutable_evaluated());
}

void Fill(const protocol::Failure& failure, v1::MemberMessage& message) {
  v1::Failure& encoded = *message.mutable_failure();
  encoded.set_message(failure.message);
  encoded.set_fatal(failure.fatal);
  encoded.set_invalid(failure.invalid);
  encoded.set_diverged(failure.diverged);
}

void Fill(const protocol::Leaving& /*leaving*/, v1::MemberMessage& message) {
  message.mutable_leaving();
}

void Fill(const protocol::StoredBuckets& stored, v1::MemberMessage& message) {
  Encode(stored, *message.mutable_stored_buckets());
}

void Fill(const protocol::Proposals& proposals, v1::MemberMessage& message) {
  Encode(proposals, *message.mutable_proposals());
}

void Fill(const protocol::PushesPaused& paused, v1::MemberMessage& message) {
  message.mutable_pushes_paused()->set_checkpoint(paused.checkpoint);
  message.mutable_pushes_paused()->set_sequence(paused.sequence);
}

void Fill(const protocol::Draining& /*draining*/, v1::MemberMessage& message) {
  message.mutable_draining();
}

void Fill(const protocol::Loading& loading, v1::MemberMessage& message) {
  message.mutable_loading()->set_what(loading.what);
  message.mutable_loading()->set_fails(loading.fails);
}

void Fill(const protocol::Welcome& welcome, v1::ControllerMessage& message) {
  v1::Welcome& encoded = *message.mutable_welcome();
  encoded.set_training_examples(welcome.training_examples);
  encoded.set_term(welcome.term);
  encoded.set_incarnation(welcome.incarnation);
  encoded.set_job_uid(welcome.job_uid);
  encoded.set_attempt(welcome.attempt);
  for (const protocol::DataFile& file : welcome.data_files) {
    Encode(file, *encoded.add_data_files());
  }
}

void Fill(const protocol::Membership& view, v1::ControllerMessage& message) {
  v1::Membership& encoded = *message.mutable_membership();
  encoded.set_version(view.version);
  for (const protocol::Member& member : view.members) {
    v1::Member& added = *encoded.add_members();
    added.set_role(static_cast<v1::Role>(member.id.role));
    added.set_slot(member.id.slot);
    added.set_incarnation(member.incarnation);
    added.set_address(member.address);
    added.set_replication_address(member.replication_address);
    added.set_generation(member.generation);
  }
  for (const protocol::Configuration& bucket : view.buckets) {
    Encode(bucket, *encoded.add_buckets());
  }
  for (const protocol::ServerId& server : view.dead) {
    Encode(server, *encoded.add_dead());
  }
  encoded.mutable_part_owner()->Add(view.part_owner.begin(), view.part_owner.end());
}

void Fill(const protocol::OpenEpoch& open, v1::ControllerMessage& message) {
  message.mutable_open_epoch()->set_epoch(open.epoch);
}

void Fill(const protocol::CloseEpoch& close, v1::ControllerMessage& message) {
  message.mutable_close_epoch()->set_epoch(close.epoch);
}

void Fill(const protocol::FlushWorker& flush, v1::ControllerMessage& message) {
  message.mutable_flush_worker()->set_epoch(flush.epoch);
}

void Fill(const protocol::TakeSnapshot& take, v1::ControllerMessage& message) {
  Encode(take, *message.mutable_take_snapshot());
}

void Fill(const protocol::Evaluate& evaluate, v1::ControllerMessage& message) {
  message.mutable_evaluate()->set_epoch(evaluate.epoch);
  message.mutable_evaluate()->set_snapshot(evaluate.snapshot);
}

void Fill(const protocol::PausePushes& pause, v1::ControllerMessage& message) {
  message.mutable_pause_pushes()->set_checkpoint(pause.checkpoint);
}

void Fill(const protocol::ResumePushes& resume, v1::ControllerMessage& message) {
  message.mutable_resume_pushes()->set_checkpoint(resume.checkpoint);
}

void Fill(const protocol::Stop& stop, v1::ControllerMessage& message) {
  message.mutable_stop()->set_reason(stop.reason);
}

void Fill(const protocol::Refused& refused, v1::ControllerMessage& message) {
  message.mutable_refused()->set_reason(refused.reason);
}

}  // namespace

std::optional<protocol::MemberMessage> Decode(const v1::MemberMessage& message) {
  switch (message.kind_case()) {
    case v1::MemberMessage::kJoin:
      return IsRole(message.join().role()) ? std::optional(DecodeJoin(message.join()))
                                           : std::nullopt;
    case v1::MemberMessage::kHeartbeat:
      return DecodeHeartbeat(message.heartbeat());
    case v1::MemberMessage::kBucketsReady:
      return Decode(message.buckets_ready());
    case v1::MemberMessage::kEpochEnded:
      return protocol::EpochEnded{message.epoch_ended().epoch()};
    case v1::MemberMessage::kPartClosed:
      return Decode(message.part_closed());
    case v1::MemberMessage::kWorkerFlushed:
      return protocol::WorkerFlushed{message.worker_flushed().epoch()};
    case v1::MemberMessage::kSnapshotTaken:
      return Decode(message.snapshot_taken());
    case v1::MemberMessage::kEvaluated:
      return Decode(message.evaluated());
    case v1::MemberMessage::kFailure:
      return protocol::Failure{.message = message.failure().message(),
                               .fatal = message.failure().fatal(),
                               .invalid = message.failure().invalid(),
                               .diverged = message.failure().diverged()};
    case v1::MemberMessage::kLeaving:
      return protocol::Leaving{};
    case v1::MemberMessage::kStoredBuckets:
      return Decode(message.stored_buckets());
    case v1::MemberMessage::kProposals:
      return Decode(message.proposals());
    case v1::MemberMessage::kPushesPaused:
      return protocol::PushesPaused{.checkpoint = message.pushes_paused().checkpoint(),
                                    .sequence = message.pushes_paused().sequence()};
    case v1::MemberMessage::kDraining:
      return protocol::Draining{};
    case v1::MemberMessage::kLoading:
      return protocol::Loading{.what = message.loading().what(),
                               .fails = message.loading().fails()};
    case v1::MemberMessage::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

v1::MemberMessage Encode(const protocol::MemberMessage& message) {
  v1::MemberMessage encoded;
  std::visit([&](const auto& kind) { Fill(kind, encoded); }, message);
  return encoded;
}

std::optional<protocol::ControllerMessage> Decode(const v1::ControllerMessage& message) {
  switch (message.kind_case()) {
    case v1::ControllerMessage::kMembership:
      return Decode(message.membership());
    case v1::ControllerMessage::kOpenEpoch:
      return protocol::OpenEpoch{message.open_epoch().epoch()};
    case v1::ControllerMessage::kCloseEpoch:
      return protocol::CloseEpoch{message.close_epoch().epoch()};
    case v1::ControllerMessage::kFlushWorker:
      return protocol::FlushWorker{message.flush_worker().epoch()};
    case v1::ControllerMessage::kTakeSnapshot:
      return Decode(message.take_snapshot());
    case v1::ControllerMessage::kEvaluate:
      return protocol::Evaluate{.epoch = message.evaluate().epoch(),
                                .snapshot = message.evaluate().snapshot()};
    case v1::ControllerMessage::kStop:
      return protocol::Stop{message.stop().reason()};
    case v1::ControllerMessage::kRefused:
      return protocol::Refused{message.refused().reason()};
    case v1::ControllerMessage::kPausePushes:
      return protocol::PausePushes{message.pause_pushes().checkpoint()};
    case v1::ControllerMessage::kResumePushes:
      return protocol::ResumePushes{message.resume_pushes().checkpoint()};
    case v1::ControllerMessage::kWelcome:
    case v1::ControllerMessage::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

v1::ControllerMessage Encode(const protocol::ControllerMessage& message) {
  v1::ControllerMessage encoded;
  std::visit([&](const auto& kind) { Fill(kind, encoded); }, message);
  return encoded;
}

protocol::Membership Decode(const v1::Membership& message) {
  protocol::Membership view{
      .version = message.version(),
      .members = {},
      .buckets = {},
      .part_owner = {message.part_owner().begin(), message.part_owner().end()},
      .dead = {}};
  for (const v1::Member& member : message.members()) {
    if (IsRole(member.role())) {
      view.members.push_back(
          {.id = {.role = static_cast<Role>(member.role()), .slot = member.slot()},
           .incarnation = member.incarnation(),
           .address = member.address(),
           .replication_address = member.replication_address(),
           .generation = member.generation()});
    }
  }
  for (const v1::Configuration& bucket : message.buckets()) {
    view.buckets.push_back(Decode(bucket));
  }
  for (const v1::ServerId& server : message.dead()) {
    view.dead.push_back(Decode(server));
  }
  return view;
}

}  // namespace adamant::codec
