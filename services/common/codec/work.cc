#include "services/common/codec/work.h"

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/data_server.pb.h"

namespace adamant::codec {

using protocol::WorkKind;

protocol::Lease Decode(const v1::Lease& message) {
  return {.batch = {.kind = message.kind() == v1::EVALUATE ? WorkKind::kEvaluate : WorkKind::kTrain,
                    .epoch = message.epoch(),
                    .part = message.part(),
                    .index = message.index()},
          .id = message.id()};
}

void Encode(const protocol::Lease& lease, v1::Lease& message) {
  message.set_kind(lease.batch.kind == WorkKind::kTrain ? v1::TRAIN : v1::EVALUATE);
  message.set_epoch(lease.batch.epoch);
  message.set_part(lease.batch.part);
  message.set_index(lease.batch.index);
  message.set_id(lease.id);
}

protocol::LeaseResult Decode(const v1::LeaseResult& message) {
  return {.lease = Decode(message.lease()),
          .examples = message.examples(),
          .loss_sum = message.loss_sum(),
          .correct = message.correct()};
}

void Encode(const protocol::LeaseResult& result, v1::LeaseResult& message) {
  Encode(result.lease, *message.mutable_lease());
  message.set_examples(result.examples);
  message.set_loss_sum(result.loss_sum);
  message.set_correct(result.correct);
}

protocol::PartClosed Decode(const v1::PartClosed& message) {
  return {.epoch = message.epoch(),
          .part = message.part(),
          .counted_examples = message.counted_examples(),
          .left_examples = message.left_examples(),
          .retrained_examples = message.retrained_examples()};
}

void Encode(const protocol::PartClosed& closed, v1::PartClosed& message) {
  message.set_epoch(closed.epoch);
  message.set_part(closed.part);
  message.set_counted_examples(closed.counted_examples);
  message.set_left_examples(closed.left_examples);
  message.set_retrained_examples(closed.retrained_examples);
}

protocol::Evaluated Decode(const v1::Evaluated& message) {
  return {.epoch = message.epoch(),
          .snapshot = message.snapshot(),
          .examples = message.examples(),
          .correct = message.correct(),
          .loss_sum = message.loss_sum(),
          .most_frequent = message.most_frequent()};
}

void Encode(const protocol::Evaluated& evaluated, v1::Evaluated& message) {
  message.set_epoch(evaluated.epoch);
  message.set_snapshot(evaluated.snapshot);
  message.set_examples(evaluated.examples);
  message.set_correct(evaluated.correct);
  message.set_loss_sum(evaluated.loss_sum);
  message.set_most_frequent(evaluated.most_frequent);
}

protocol::DataFile Decode(const v1::DataFile& message) {
  return {.field = message.field(), .fingerprint = message.fingerprint()};
}

void Encode(const protocol::DataFile& file, v1::DataFile& message) {
  message.set_field(file.field);
  message.set_fingerprint(file.fingerprint);
}

protocol::DataServerProgress Decode(const v1::DataServerProgress& message) {
  protocol::DataServerProgress progress{.epoch = message.epoch(),
                                        .counted_examples = message.counted_examples(),
                                        .total_examples = message.total_examples(),
                                        .dispatched_examples = message.dispatched_examples(),
                                        .retrained_examples = message.retrained_examples(),
                                        .job_examples = message.job_examples(),
                                        .training_examples = message.training_examples(),
                                        .decided_epoch = message.decided_epoch(),
                                        .unattended = {},
                                        .data_files = {}};
  for (const v1::DataFile& file : message.data_files()) {
    progress.data_files.push_back(Decode(file));
  }
  for (const v1::UnattendedEpoch& epoch : message.unattended()) {
    progress.unattended.push_back({.epoch = epoch.epoch(),
                                   .counted = epoch.counted(),
                                   .left = epoch.left(),
                                   .retrained = epoch.retrained()});
  }
  return progress;
}

void Encode(const protocol::DataServerProgress& progress, v1::DataServerProgress& message) {
  message.set_epoch(progress.epoch);
  message.set_counted_examples(progress.counted_examples);
  message.set_total_examples(progress.total_examples);
  message.set_dispatched_examples(progress.dispatched_examples);
  message.set_retrained_examples(progress.retrained_examples);
  message.set_job_examples(progress.job_examples);
  message.set_training_examples(progress.training_examples);
  message.set_decided_epoch(progress.decided_epoch);
  for (const protocol::DataFile& file : progress.data_files) {
    Encode(file, *message.add_data_files());
  }
  for (const protocol::UnattendedEpoch& epoch : progress.unattended) {
    v1::UnattendedEpoch& entry = *message.add_unattended();
    entry.set_epoch(epoch.epoch);
    entry.set_counted(epoch.counted);
    entry.set_left(epoch.left);
    entry.set_retrained(epoch.retrained);
  }
}

}  // namespace adamant::codec
