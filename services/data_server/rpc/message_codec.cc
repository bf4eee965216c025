#include "services/data_server/rpc/message_codec.h"

#include "services/common/codec/work.h"

namespace adamant::data_server {

Acknowledge FromProto(WorkerId worker, const v1::Acknowledge& message) {
  Acknowledge result{.worker = worker, .results = {}};
  for (const v1::LeaseResult& entry : message.results()) {
    result.results.push_back(codec::Decode(entry));
  }
  return result;
}

HandBack FromProto(WorkerId worker, const v1::HandBack& message) {
  HandBack result{.worker = worker, .leases = {}};
  for (const v1::Lease& lease : message.leases()) {
    result.leases.push_back(codec::Decode(lease));
  }
  return result;
}

v1::WorkReply ToProto(const Acknowledged& message) {
  v1::WorkReply reply;
  v1::Acknowledged& proto = *reply.mutable_acknowledged();
  for (const Lease& lease : message.leases) {
    codec::Encode(lease, *proto.add_leases());
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

v1::WorkReply ToProto(const Dispatch& dispatch) {
  v1::WorkReply reply;
  v1::Batch& batch = *reply.mutable_batch();
  codec::Encode(dispatch.lease, *batch.mutable_lease());
  batch.set_job_examples(dispatch.job_examples);
  batch.set_ahead_examples(dispatch.ahead_examples);
  batch.set_snapshot(dispatch.snapshot);
  return reply;
}

}  // namespace adamant::data_server
