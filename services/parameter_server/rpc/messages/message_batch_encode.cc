#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <utility>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/codec/buckets.h"
#include "services/common/codec/updates.h"
#include "services/parameter_server/rpc/messages/message_batch.h"
#include "services/parameter_server/rpc/messages/payload.h"

namespace adamant::parameter_server {
namespace {

// Floats that follow a copied part stay aligned.
constexpr std::array<std::byte, sizeof(float) - 1> kPadding{};

std::uint64_t Nanoseconds(Clock::TimePoint time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

class Encoder {
 public:
  void Add(const PeerMessage& message) {
    v1::PeerMessage& out = *message_batch_.add_messages();
    out.set_bucket(message.bucket);
    out.set_epoch(message.configuration_version);
    std::visit([&](const auto& kind) { Encode(kind, out); }, message.kind);
  }

  rpc::OutgoingFrame Finish() && {
    payload_.insert(payload_.end(),
                    std::make_move_iterator(values_.begin()),
                    std::make_move_iterator(values_.end()));
    return {.header = message_batch_.SerializeAsString(), .payload = std::move(payload_)};
  }

 private:
  void Encode(const Prepare& prepare, v1::PeerMessage& message) {
    v1::Prepare& out = *message.mutable_prepare();
    out.set_lsn(prepare.entry->lsn);
    out.set_origin(prepare.entry->origin);
    out.set_base(prepare.base);
    out.set_committed(prepare.committed);
    for (const LoggedUpdate& update : prepare.entry->updates) {
      Encode(update, prepare.entry, *out.add_updates());
    }
    for (const LoggedPut& put : prepare.entry->puts) {
      v1::LoggedPut& logged = *out.add_puts();
      logged.set_key(put.key);
      logged.set_version(put.version);
      logged.set_value(put.value);
    }
  }

  void Encode(const LoggedUpdate& update, const EntryPtr& entry, v1::LoggedUpdate& out) {
    out.set_shard(update.shard);
    out.set_worker_slot(update.writer.slot);
    out.set_worker_incarnation(update.writer.incarnation);
    out.set_sequence(update.sequence);
    out.set_after_loss(update.after_loss);
    out.set_kind(static_cast<v1::UpdateKind>(update.kind));
    out.set_job_examples(update.job_examples);
    out.set_examples(update.examples);
    if (update.correction != Correction{}) {
      codec::Encode(update.correction, *out.mutable_correction());
    }
    if (update.operands != nullptr) {
      out.set_operands(IndexOf(update.operands));
    } else {
      values_.push_back({std::as_bytes(update.values), entry});
    }
  }

  std::uint32_t IndexOf(const std::shared_ptr<const SharedOperands>& shared) {
    const auto [place, added] = operands_.emplace(shared.get(), message_batch_.operands_size());
    if (added) {
      const Operands& operands = shared->operands;
      codec::Encode(operands, *message_batch_.add_operands());
      payload_.push_back({std::as_bytes(operands.activations), shared});
      payload_.push_back({std::as_bytes(operands.errors), shared});
    }
    return static_cast<std::uint32_t>(place->second);
  }

  static void Encode(const PrepareAck& ack, v1::PeerMessage& message) {
    message.mutable_prepare_ack()->set_acked(ack.acked);
    message.mutable_prepare_ack()->set_gap(ack.gap);
    message.mutable_prepare_ack()->set_copy(ack.copy);
    message.mutable_prepare_ack()->set_flushed(ack.flushed);
  }

  static void Encode(const Beacon& beacon, v1::PeerMessage& message) {
    v1::Beacon& out = *message.mutable_beacon();
    out.set_generation(beacon.generation);
    codec::Encode(beacon.primary, *out.mutable_primary());
    for (const ServerId& replica : beacon.replicas) {
      codec::Encode(replica, *out.add_members());
    }
    out.set_base(beacon.base);
    out.set_committed(beacon.committed);
    out.set_sent(Nanoseconds(beacon.sent));
    out.set_flush(beacon.flush);
  }

  static void Encode(const BeaconAnswer& answer, v1::PeerMessage& message) {
    message.mutable_beacon_answer()->set_sent(Nanoseconds(answer.sent));
    message.mutable_beacon_answer()->set_acked(answer.acked);
    message.mutable_beacon_answer()->set_copy(answer.copy);
    message.mutable_beacon_answer()->set_flushed(answer.flushed);
  }

  static void Encode(const Released& /*released*/, v1::PeerMessage& message) {
    message.mutable_released();
  }

  static void Encode(const CopyBegin& begin, v1::PeerMessage& message) {
    v1::CopyBegin& out = *message.mutable_copy_begin();
    out.set_copy(begin.copy);
    out.set_base(begin.base);
    out.set_base_origin(begin.base_origin);
    out.set_generation(begin.generation);
    out.set_parts(begin.parts);
  }

  void Encode(const CopyPart& part, v1::PeerMessage& message) {
    v1::CopyPart& out = *message.mutable_copy_part();
    out.set_copy(part.copy);
    out.set_index(part.index);
    if (const auto* record = std::get_if<CopiedRecord>(&part.content)) {
      out.mutable_record()->set_key(record->key);
      out.mutable_record()->set_version(record->version);
      out.mutable_record()->set_value(record->value);
      return;
    }
    const auto& shard = std::get<CopiedShard>(part.content);
    const std::string& stored = *shard.stored;
    out.mutable_shard()->set_shard(shard.shard);
    out.mutable_shard()->set_bytes(stored.size());
    values_.push_back({std::as_bytes(std::span(stored)), shard.stored});
    values_.push_back({std::span(kPadding).first(PaddingAfter(stored.size())), nullptr});
  }

  static void Encode(const CopyAck& ack, v1::PeerMessage& message) {
    message.mutable_copy_ack()->set_copy(ack.copy);
    message.mutable_copy_ack()->set_index(ack.index);
  }

  v1::MessageBatch message_batch_;
  std::map<const SharedOperands*, int> operands_;  // their index
  std::vector<rpc::LentBytes> payload_;            // operands
  std::vector<rpc::LentBytes> values_;
};

std::uint64_t BytesOf(const Prepare& prepare) {
  std::uint64_t bytes = 0;
  for (const LoggedUpdate& update : prepare.entry->updates) {
    bytes += update.values.size_bytes();
    if (update.operands != nullptr) {
      bytes += update.operands->operands.activations.size_bytes() +
               update.operands->operands.errors.size_bytes();
    }
  }
  for (const LoggedPut& put : prepare.entry->puts) {
    bytes += put.key.size() + put.value.size();
  }
  return bytes;
}

std::uint64_t BytesOf(const CopyPart& part) {
  if (const auto* record = std::get_if<CopiedRecord>(&part.content)) {
    return record->key.size() + record->value.size();
  }
  return std::get<CopiedShard>(part.content).stored->size();
}

}  // namespace

std::uint64_t BytesOf(const PeerMessage& message) {
  if (const auto* prepare = std::get_if<Prepare>(&message.kind)) {
    return BytesOf(*prepare);
  }
  const auto* part = std::get_if<CopyPart>(&message.kind);
  return part == nullptr ? 0 : BytesOf(*part);
}

rpc::OutgoingFrame EncodeMessageBatch(std::span<const PeerMessage> messages) {
  Encoder encoder;
  for (const PeerMessage& message : messages) {
    encoder.Add(message);
  }
  return std::move(encoder).Finish();
}

}  // namespace adamant::parameter_server
