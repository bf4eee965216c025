#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/codec/buckets.h"
#include "services/common/codec/updates.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/updates/operands.h"
#include "services/parameter_server/rpc/messages/message_batch.h"
#include "services/parameter_server/rpc/messages/payload.h"

namespace adamant::parameter_server {
namespace {

// Records travel in the header, so that it may be large; but what it unfolds to in memory must stay
// bounded.
constexpr std::size_t kMaxHeaderBytes = std::size_t{32} << 20;

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError("a peer sent a message batch " + what);
}

absl::Status TooShort() { return Bad("whose payload is shorter than its header says"); }

class Decoder {
 public:
  Decoder(const rpc::LentBytes& payload, const MessageBatchLimits& limits)
      : owner_(payload.owner), reader_(payload.bytes), limits_(limits) {}

  absl::StatusOr<std::vector<PeerMessage>> Decode(const v1::MessageBatch& message_batch) {
    for (const v1::Operands& operands : message_batch.operands()) {
      ADAMANT_RETURN_IF_ERROR(Decode(operands));
    }
    std::vector<PeerMessage> messages;
    messages.reserve(message_batch.messages_size());
    for (const v1::PeerMessage& message : message_batch.messages()) {
      if (message.bucket() >= limits_.layout.buckets()) {
        return Bad("for bucket " + std::to_string(message.bucket()) + " of " +
                   std::to_string(limits_.layout.buckets()));
      }
      PeerMessage& out = messages.emplace_back();
      out.bucket = message.bucket();
      out.configuration_version = message.epoch();
      ADAMANT_RETURN_IF_ERROR(DecodeKind(message, out));
    }
    if (!reader_.AtEnd()) {
      return Bad("whose payload is longer than its header says");
    }
    return messages;
  }

 private:
  absl::Status Decode(const v1::Operands& header) {
    Operands operands;
    if (!ReadOperands(header, reader_, operands)) {
      return TooShort();
    }
    if (!FitsTensor(limits_.layout, operands)) {
      return Bad("with operands that do not fit tensor " + std::to_string(operands.tensor));
    }
    operands_.push_back(std::make_shared<const SharedOperands>(SharedOperands{operands, owner_}));
    return absl::OkStatus();
  }

  absl::Status DecodeKind(const v1::PeerMessage& message, PeerMessage& out) {
    switch (message.kind_case()) {
      case v1::PeerMessage::kPrepare:
        return Decode(message.prepare(), out);
      case v1::PeerMessage::kPrepareAck:
        out.kind = PrepareAck{message.prepare_ack().acked(),
                              message.prepare_ack().gap(),
                              message.prepare_ack().copy(),
                              message.prepare_ack().flushed()};
        return absl::OkStatus();
      case v1::PeerMessage::kBeacon:
        return Decode(message.beacon(), out);
      case v1::PeerMessage::kBeaconAnswer: {
        BeaconAnswer& answer = out.kind.emplace<BeaconAnswer>();
        answer.acked = message.beacon_answer().acked();
        answer.copy = message.beacon_answer().copy();
        answer.flushed = message.beacon_answer().flushed();
        return DecodeTime(message.beacon_answer().sent(), answer.sent);
      }
      case v1::PeerMessage::kReleased:
        out.kind = Released{};
        return absl::OkStatus();
      case v1::PeerMessage::kCopyBegin: {
        const v1::CopyBegin& begin = message.copy_begin();
        out.kind = CopyBegin{.copy = begin.copy(),
                             .base = begin.base(),
                             .base_origin = begin.base_origin(),
                             .generation = begin.generation(),
                             .parts = begin.parts()};
        return absl::OkStatus();
      }
      case v1::PeerMessage::kCopyPart:
        return Decode(message.copy_part(), out);
      case v1::PeerMessage::kCopyAck:
        out.kind = CopyAck{message.copy_ack().copy(), message.copy_ack().index()};
        return absl::OkStatus();
      default:
        return Bad("with a message of an unknown kind");
    }
  }

  absl::Status Decode(const v1::Prepare& prepare, PeerMessage& out) {
    auto entry = std::make_shared<Entry>();
    entry->lsn = prepare.lsn();
    entry->origin = prepare.origin();
    entry->owner = owner_;
    for (const v1::LoggedUpdate& update : prepare.updates()) {
      ADAMANT_RETURN_IF_ERROR(Decode(update, out.bucket, entry->updates.emplace_back()));
    }
    for (const v1::LoggedPut& put : prepare.puts()) {
      ADAMANT_RETURN_IF_ERROR(CheckRecord(put, out.bucket));
      entry->puts.push_back({put.key(), put.version(), put.value()});
    }
    Prepare& decoded = out.kind.emplace<Prepare>();
    decoded = {.base = prepare.base(), .committed = prepare.committed(), .entry = entry};
    entry->bytes = BytesOf(out);
    return absl::OkStatus();
  }

  absl::Status Decode(const v1::LoggedUpdate& header, BucketId bucket, LoggedUpdate& update) {
    ADAMANT_RETURN_IF_ERROR(CheckShard(header.shard(), bucket));
    const Shard& shard = limits_.layout.shards()[header.shard()];
    if (header.worker_slot() >= limits_.writers || !v1::UpdateKind_IsValid(header.kind())) {
      return Bad("with an update of worker " + std::to_string(header.worker_slot()) + ", kind " +
                 std::to_string(header.kind()));
    }
    update = {
        .shard = header.shard(),
        .writer = {header.worker_slot(), header.worker_incarnation()},
        .sequence = header.sequence(),
        .after_loss = header.after_loss(),
        .kind = static_cast<UpdateKind>(header.kind()),
        .job_examples = header.job_examples(),
        .examples = header.examples(),
        .correction = header.has_correction() ? codec::Decode(header.correction()) : Correction{}};
    if (!update.correction.IsValid()) {
      return Bad("with an update of shard " + std::to_string(shard.id) +
                 " whose correction is out of range");
    }
    if (update.kind != UpdateKind::kOuterProduct) {
      return reader_.ReadFloats(shard.size(), update.values) ? absl::OkStatus() : TooShort();
    }
    if (header.operands() >= operands_.size() ||
        operands_[header.operands()]->operands.tensor != shard.tensor) {
      return Bad("with an update of shard " + std::to_string(shard.id) + " without its operands");
    }
    update.operands = operands_[header.operands()];
    return absl::OkStatus();
  }

  absl::Status Decode(const v1::Beacon& beacon, PeerMessage& out) {
    Beacon& decoded = out.kind.emplace<Beacon>();
    decoded.generation = beacon.generation();
    decoded.primary = codec::Decode(beacon.primary());
    for (const v1::ServerId& replica : beacon.members()) {
      decoded.replicas.push_back(codec::Decode(replica));
    }
    decoded.base = beacon.base();
    decoded.committed = beacon.committed();
    decoded.flush = beacon.flush();
    return DecodeTime(beacon.sent(), decoded.sent);
  }

  absl::Status Decode(const v1::CopyPart& part, PeerMessage& out) {
    CopyPart& decoded = out.kind.emplace<CopyPart>();
    decoded.copy = part.copy();
    decoded.index = part.index();
    if (part.has_record()) {
      ADAMANT_RETURN_IF_ERROR(CheckRecord(part.record(), out.bucket));
      decoded.content =
          CopiedRecord{part.record().key(), part.record().version(), part.record().value()};
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(CheckShard(part.shard().shard(), out.bucket));
    std::span<const std::byte> stored;
    std::span<const std::byte> padding;
    if (!reader_.Read(part.shard().bytes(), stored) ||
        !reader_.Read(PaddingAfter(stored.size()), padding)) {
      return TooShort();
    }
    decoded.content = CopiedShard{part.shard().shard(),
                                  std::make_shared<const std::string>(
                                      reinterpret_cast<const char*>(stored.data()), stored.size())};
    return absl::OkStatus();
  }

  absl::Status CheckShard(ShardId shard, BucketId bucket) const {
    const auto& shards = limits_.layout.shards();
    if (shard >= shards.size() || shards[shard].bucket != bucket) {
      return Bad("with shard " + std::to_string(shard) + ", which is not in bucket " +
                 std::to_string(bucket));
    }
    return absl::OkStatus();
  }

  template <class RecordMessage>
  absl::Status CheckRecord(const RecordMessage& record, BucketId bucket) const {
    const bool fits = !record.key().empty() && record.key().size() <= kMaxRecordKeyBytes &&
                      record.value().size() <= kMaxRecordBytes;
    if (!fits || BucketOfRecord(record.key(), limits_.layout.buckets()) != bucket) {
      return Bad("with a record that does not fit, or not into bucket " + std::to_string(bucket));
    }
    return absl::OkStatus();
  }

  static absl::Status DecodeTime(std::uint64_t nanoseconds, Clock::TimePoint& time) {
    if (nanoseconds > std::numeric_limits<std::int64_t>::max() / 2) {
      return Bad("with a time that no clock shows");
    }
    time = Clock::TimePoint(std::chrono::nanoseconds(nanoseconds));
    return absl::OkStatus();
  }

  const std::shared_ptr<const void> owner_;
  FloatReader reader_;
  const MessageBatchLimits& limits_;
  std::vector<std::shared_ptr<const SharedOperands>> operands_;
};

}  // namespace

absl::StatusOr<std::vector<PeerMessage>> DecodeMessageBatch(rpc::IncomingFrame frame,
                                                            const MessageBatchLimits& limits) {
  v1::MessageBatch message_batch;
  if (frame.header().size() > kMaxHeaderBytes ||
      !message_batch.ParseFromArray(frame.header().data(),
                                    static_cast<int>(frame.header().size()))) {
    return Bad("whose header is too long or cannot be read");
  }
  if (message_batch.messages_size() > static_cast<int>(kMaxMessageBatchMessages)) {
    return Bad("of " + std::to_string(message_batch.messages_size()) + " messages");
  }
  return Decoder(rpc::JoinPayload(std::move(frame)), limits).Decode(message_batch);
}

}  // namespace adamant::parameter_server
