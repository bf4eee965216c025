#include "services/worker/rpc/work_receiver.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/codec/work.h"

namespace adamant::worker {
namespace {

absl::StatusOr<v1::WorkReply> Parse(const rpc::IncomingFrame& frame) {
  v1::WorkReply reply;
  if (!reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::DataLossError("a data server sent a header that is no WorkReply");
  }
  return reply;
}

std::vector<Lease> LeasesOf(const v1::Acknowledged& acknowledged) {
  std::vector<Lease> leases;
  for (const v1::Lease& lease : acknowledged.leases()) {
    leases.push_back(codec::Decode(lease));
  }
  return leases;
}

}  // namespace

WorkReceiver::WorkReceiver(ServerSlot server,
                           Intake& intake,
                           DrainedServers& drained,
                           WorkHandlers handlers)
    : server_(server), intake_(intake), drained_(drained), handlers_(std::move(handlers)) {
  drained_.Set(server_, false);
}

absl::Status WorkReceiver::OnHello(const rpc::IncomingFrame& frame) {
  ADAMANT_ASSIGN_OR_RETURN(const v1::WorkReply reply, Parse(frame));
  const v1::WorkHelloReply& hello = reply.hello();
  if (!hello.refused().empty()) {
    return absl::FailedPreconditionError("refused: " + hello.refused());
  }
  Normalisation normalisation;
  normalisation.mean.assign(hello.mean().begin(), hello.mean().end());
  normalisation.deviation.assign(hello.deviation().begin(), hello.deviation().end());
  return intake_.SetNormalisation(normalisation);
}

void WorkReceiver::OnChange(bool connected) {
  if (!connected) {
    drained_.Set(server_, false);
  }
}

absl::Status WorkReceiver::OnFrame(const rpc::IncomingFrame& frame) {
  ADAMANT_ASSIGN_OR_RETURN(const v1::WorkReply reply, Parse(frame));
  switch (reply.kind_case()) {
    case v1::WorkReply::kBatch:
      return OnBatch(reply.batch(), frame);
    case v1::WorkReply::kAcknowledged:
      handlers_.on_acknowledged(LeasesOf(reply.acknowledged()));
      return absl::OkStatus();
    case v1::WorkReply::kDrained:
      drained_.Set(server_, true);
      return absl::OkStatus();
    case v1::WorkReply::kEpochClosed:
      drained_.Set(server_, false);
      handlers_.on_epoch_closed(reply.epoch_closed().epoch());
      return absl::OkStatus();
    default:
      return absl::InternalError("a data server sent a reply of an unknown kind");
  }
}

absl::Status WorkReceiver::OnBatch(const v1::Batch& batch, const rpc::IncomingFrame& frame) {
  const auto examples = static_cast<std::size_t>(batch.labels_size());
  const BatchFormat& format = intake_.format();
  const auto classes = static_cast<std::uint64_t>(format.classes);
  if (examples == 0 || examples > format.batch_size ||
      frame.payload_bytes() != examples * format.example_bytes ||
      std::any_of(batch.labels().begin(), batch.labels().end(), [&](std::uint32_t label) {
        return label >= classes;
      })) {
    return absl::InternalError("a batch of " + std::to_string(examples) + " examples in " +
                               std::to_string(frame.payload_bytes()) +
                               " bytes does not fit the model");
  }
  const Lease lease = codec::Decode(batch.lease());
  if (lease.batch.kind == WorkKind::kTrain) {
    drained_.Set(server_, false);
    if (lease.batch.epoch >
        begun_epoch_) {  // before a slot is waited for: it may be what frees one
      begun_epoch_ = lease.batch.epoch;
      handlers_.on_epoch_begun(lease.batch.epoch);
    }
  }
  Batch* const slot = AwaitSlot();
  if (slot == nullptr) {
    if (stopped_.load(std::memory_order_acquire)) {
      return absl::CancelledError("the worker stops");
    }
    handlers_.on_no_slot(lease);
    return absl::OkStatus();
  }
  slot->lease = lease;
  slot->examples = static_cast<std::uint32_t>(examples);
  slot->job_examples = batch.job_examples();
  slot->ahead_examples = batch.ahead_examples();
  slot->snapshot = batch.snapshot();
  std::copy(batch.labels().begin(), batch.labels().end(), slot->labels.begin());
  rpc::PayloadReader reader(frame);
  ADAMANT_RETURN_IF_ERROR(
      reader.Read(std::as_writable_bytes(std::span(slot->pixels).first(frame.payload_bytes()))));
  if (lease.batch.kind == WorkKind::kEvaluate) {
    handlers_.on_snapshot_wanted(lease.batch.epoch, slot->snapshot);
  }
  intake_.Put(slot);
  return absl::OkStatus();
}

Batch* WorkReceiver::AwaitSlot() {
  for (;;) {
    const std::uint32_t seen = intake_.slot_notifier().Read();
    if (stopped_.load(std::memory_order_acquire)) {
      return nullptr;
    }
    if (Batch* const slot = intake_.TakeSlot()) {
      return slot;
    }
    if (intake_.settling()) {
      return nullptr;
    }
    intake_.slot_notifier().Wait(seen);
  }
}

void WorkReceiver::Stop() {
  stopped_.store(true, std::memory_order_release);
  intake_.slot_notifier().Notify();
}

}  // namespace adamant::worker
