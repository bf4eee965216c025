#include "services/data_server/rpc/convert.h"

namespace adamant::data_server {
namespace {

void Fill(const Lease& lease, v1::Lease& proto) {
  proto.set_kind(lease.batch.kind == WorkKind::kTrain ? v1::TRAIN : v1::EVALUATE);
  proto.set_epoch(lease.batch.epoch);
  proto.set_part(lease.batch.part);
  proto.set_index(lease.batch.index);
  proto.set_id(lease.id);
}

}  // namespace

Lease FromProto(const v1::Lease& lease) {
  return {.batch = {.kind = lease.kind() == v1::EVALUATE ? WorkKind::kEvaluate : WorkKind::kTrain,
                    .epoch = lease.epoch(),
                    .part = lease.part(),
                    .index = lease.index()},
          .id = lease.id()};
}

Acknowledge FromProto(WorkerId worker, const v1::Acknowledge& message) {
  Acknowledge result{.worker = worker, .results = {}};
  for (const v1::LeaseResult& entry : message.results()) {
    result.results.push_back({.lease = FromProto(entry.lease()),
                              .loss_sum = entry.loss_sum(),
                              .correct = entry.correct()});
  }
  return result;
}

HandBack FromProto(WorkerId worker, const v1::HandBack& message) {
  HandBack result{.worker = worker, .leases = {}};
  for (const v1::Lease& lease : message.leases()) {
    result.leases.push_back(FromProto(lease));
  }
  return result;
}

Membership FromProto(const v1::Membership& view) {
  Membership result;
  for (const v1::Member& member : view.members()) {
    if (member.role() == v1::WORKER) {
      result.workers.push_back({.slot = member.slot(), .incarnation = member.incarnation()});
    }
  }
  result.part_owner.assign(view.part_owner().begin(), view.part_owner().end());
  return result;
}

v1::WorkReply ToProto(const Acknowledged& message) {
  v1::WorkReply reply;
  v1::Acknowledged& proto = *reply.mutable_acknowledged();
  for (const Lease& lease : message.leases) {
    Fill(lease, *proto.add_leases());
  }
  proto.mutable_duplicates()->Assign(message.duplicates.begin(), message.duplicates.end());
  return reply;
}

v1::WorkReply ToProto(const Drained& message) {
  v1::WorkReply reply;
  reply.mutable_drained()->set_epoch(message.epoch);
  return reply;
}

v1::WorkReply ToProto(const EpochClosed& message) {
  v1::WorkReply reply;
  reply.mutable_epoch_closed()->set_epoch(message.epoch);
  return reply;
}

v1::WorkReply ToProto(const Deal& deal) {
  v1::WorkReply reply;
  v1::Batch& batch = *reply.mutable_batch();
  Fill(deal.lease, *batch.mutable_lease());
  batch.set_job_examples(deal.job_examples);
  batch.set_ahead_examples(deal.ahead_examples);
  batch.set_snapshot(deal.snapshot);
  return reply;
}

v1::MemberMessage ToProto(const EpochEnded& message) {
  v1::MemberMessage proto;
  proto.mutable_epoch_ended()->set_epoch(message.epoch);
  return proto;
}

v1::MemberMessage ToProto(const PartClosed& message) {
  v1::MemberMessage proto;
  v1::PartClosed& closed = *proto.mutable_part_closed();
  closed.set_epoch(message.epoch);
  closed.set_part(message.part);
  closed.set_counted_examples(message.counted_examples);
  closed.set_left_examples(message.left_examples);
  closed.set_retrained_examples(message.retrained_examples);
  return proto;
}

v1::MemberMessage ToProto(const Evaluated& message) {
  v1::MemberMessage proto;
  v1::Evaluated& evaluated = *proto.mutable_evaluated();
  evaluated.set_epoch(message.epoch);
  evaluated.set_snapshot(message.snapshot);
  evaluated.set_examples(message.examples);
  evaluated.set_correct(message.correct);
  evaluated.set_loss_sum(message.loss_sum);
  evaluated.set_most_frequent(message.most_frequent);
  return proto;
}

}  // namespace adamant::data_server
