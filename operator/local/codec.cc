#include "operator/local/codec.h"

#include <type_traits>
#include <variant>

#include "proto/adamant/v1/control.pb.h"

namespace adamant::local {
namespace {

using controller::Role;

controller::Join DecodeJoin(const v1::Join& join) {
  return {.format_version = join.format_version(),
          .id = {.role = static_cast<Role>(join.role()), .slot = join.slot()},
          .uid = join.uid(),
          .address = join.address(),
          .metrics_address = join.metrics_address(),
          .incarnation = join.incarnation()};
}

controller::Heartbeat DecodeHeartbeat(const v1::Heartbeat& heartbeat) {
  controller::Heartbeat decoded;
  if (heartbeat.has_worker()) {
    const v1::WorkerProgress& worker = heartbeat.worker();
    decoded.progress = controller::WorkerProgress{
        .trained_examples = worker.trained_examples(),
        .loss_sum = worker.loss_sum(),
        .correct = worker.correct(),
        .pushes_acknowledged = worker.pushes_acknowledged(),
        .pushes_refused = worker.pushes_refused(),
        .updates_lost = worker.updates_lost(),
        .staleness_counts = {worker.staleness_counts().begin(), worker.staleness_counts().end()},
        .epoch = worker.epoch()};
  } else if (heartbeat.has_data_server()) {
    const v1::DataServerProgress& data = heartbeat.data_server();
    decoded.progress =
        controller::DataServerProgress{.epoch = data.epoch(),
                                       .counted_examples = data.counted_examples(),
                                       .total_examples = data.total_examples(),
                                       .dealt_examples = data.dealt_examples(),
                                       .retrained_examples = data.retrained_examples(),
                                       .job_examples = data.job_examples()};
  } else if (heartbeat.has_parameter_server()) {
    const v1::ParameterServerProgress& server = heartbeat.parameter_server();
    decoded.progress = controller::ParameterServerProgress{
        .updates_applied = server.updates_applied(),
        .dirty_bytes = server.dirty_bytes(),
        .oldest_unflushed_seconds = server.oldest_unflushed_seconds(),
        .flushes = server.flushes(),
        .alarm = server.alarm()};
  }
  return decoded;
}

controller::BucketsReady DecodeBuckets(const v1::BucketsReady& ready) {
  controller::BucketsReady decoded;
  for (const v1::BucketState& bucket : ready.buckets()) {
    decoded.buckets.push_back({.bucket = bucket.bucket(),
                               .epoch = bucket.epoch(),
                               .lost = bucket.lost(),
                               .detail = bucket.detail()});
  }
  return decoded;
}

void Fill(const controller::Welcome& welcome, v1::ControllerMessage& message) {
  v1::Welcome& encoded = *message.mutable_welcome();
  encoded.set_term(welcome.term);
  encoded.set_incarnation(welcome.incarnation);
  encoded.set_job_uid(welcome.job_uid);
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
  }
  for (const controller::Bucket& bucket : view.buckets) {
    v1::Bucket& added = *encoded.add_buckets();
    added.set_epoch(bucket.epoch);
    added.mutable_primary()->set_slot(bucket.primary);
    added.set_created(bucket.created);
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
}

void Fill(const controller::Evaluate& evaluate, v1::ControllerMessage& message) {
  message.mutable_evaluate()->set_epoch(evaluate.epoch);
  message.mutable_evaluate()->set_snapshot(evaluate.snapshot);
}

void Fill(const controller::Stop& stop, v1::ControllerMessage& message) {
  message.mutable_stop()->set_reason(stop.reason);
}

void Fill(const controller::Refused& refused, v1::ControllerMessage& message) {
  message.mutable_refused()->set_reason(refused.reason);
}

std::chrono::milliseconds Milliseconds(const google::protobuf::Duration& duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos()));
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
    case v1::MemberMessage::kSnapshotTaken: {
      const v1::SnapshotTaken& taken = message.snapshot_taken();
      return controller::SnapshotTaken{
          .snapshot = taken.snapshot(), .ok = taken.ok(), .error = taken.error()};
    }
    case v1::MemberMessage::kEvaluated: {
      const v1::Evaluated& evaluated = message.evaluated();
      return controller::Evaluated{.epoch = evaluated.epoch(),
                                   .snapshot = evaluated.snapshot(),
                                   .examples = evaluated.examples(),
                                   .correct = evaluated.correct(),
                                   .loss_sum = evaluated.loss_sum()};
    }
    case v1::MemberMessage::kFailure:
      return controller::Failure{.message = message.failure().message(),
                                 .fatal = message.failure().fatal()};
    case v1::MemberMessage::kLeaving:
      return controller::Leaving{};
    case v1::MemberMessage::kStoredBuckets:
    case v1::MemberMessage::kProposals:
    case v1::MemberMessage::kPushesHeld:
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

v1::JobStatus Encode(const controller::JobReport& report) {
  v1::JobStatus status;
  status.set_name(report.name);
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
  }
  return status;
}

controller::JobReport Decode(const v1::JobStatus& status) {
  controller::JobReport report{.name = status.name(),
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
         .buckets = member.buckets()});
  }
  return report;
}

controller::JobSettings SettingsOf(const v1::TrainingJob& job) {
  const v1::Distribution& distribution = job.spec().distribution();
  const v1::RunPolicy& policy = job.spec().run_policy();
  controller::JobSettings settings{
      .name = job.metadata().name(),
      .workers = static_cast<std::uint32_t>(distribution.workers()),
      .data_servers = static_cast<std::uint32_t>(distribution.data_servers()),
      .parameter_servers = static_cast<std::uint32_t>(distribution.parameter_servers().count()),
      .buckets = static_cast<std::uint32_t>(distribution.parameter_servers().buckets()),
      .epochs = static_cast<std::uint64_t>(policy.epochs()),
      .checkpoint_interval = Milliseconds(policy.checkpoint_interval()),
      .restart_limit = static_cast<std::uint32_t>(policy.restart_budget().limit()),
      .restart_backoff = Milliseconds(policy.restart_budget().backoff())};
  if (policy.has_target_accuracy()) {
    settings.target_accuracy = policy.target_accuracy();
  }
  if (policy.has_active_deadline()) {
    settings.active_deadline = Milliseconds(policy.active_deadline());
  }
  if (policy.has_epoch_deadline()) {
    settings.epoch_deadline = Milliseconds(policy.epoch_deadline());
  }
  return settings;
}

}  // namespace adamant::local
