#include "services/parameter_server/rpc/convert.h"

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"

namespace adamant::parameter_server {
namespace {

/// Reads one operand or update after the other.
class FloatReader {
 public:
  FloatReader(const rpc::IncomingFrame& frame, Scratch& scratch)
      : reader_(frame), scratch_(scratch) {}

  /// False when fewer are left.
  bool Read(std::uint64_t elements, std::span<const float>& values) {
    if (elements > reader_.remaining() / sizeof(float)) {
      return false;
    }
    if (used_ == scratch_.size()) {
      scratch_.emplace_back();
    }
    const auto bytes = reader_.View(elements * sizeof(float), scratch_[used_++]);
    if (!bytes.ok()) {
      return false;
    }
    values = {reinterpret_cast<const float*>(bytes->data()), elements};
    return true;
  }

  [[nodiscard]] bool AtEnd() const { return reader_.remaining() == 0; }

 private:
  rpc::PayloadReader reader_;
  Scratch& scratch_;
  std::size_t used_ = 0;
};

bool DecodeOperands(const v1::Operands& header, FloatReader& reader, Operands& operands) {
  operands = {.tensor = header.tensor(),
              .rows = header.rows(),
              .inputs = header.inputs(),
              .outputs = header.outputs()};
  // Products of two 32-bit numbers fit 64 bits.
  return reader.Read(std::uint64_t{operands.rows} * operands.inputs, operands.activations) &&
         reader.Read(std::uint64_t{operands.rows} * operands.outputs, operands.errors);
}

bool DecodeUpdate(const v1::ShardUpdate& header,
                  const ShardLayout& layout,
                  FloatReader& reader,
                  ShardUpdate& update) {
  if (header.shard() >= layout.shards().size() || !v1::UpdateKind_IsValid(header.kind())) {
    return false;
  }
  update = {.shard = header.shard(),
            .bucket_epoch = header.bucket_epoch(),
            .sequence = header.sequence(),
            .fetched_version = header.fetched_version(),
            .after_loss = header.after_loss(),
            .kind = static_cast<UpdateKind>(header.kind()),
            .operands = header.operands()};
  return update.kind == UpdateKind::kOuterProduct ||
         reader.Read(layout.shards()[update.shard].size(), update.values);
}

// The enumerations of the core are those of the messages, in the same order.
static_assert(static_cast<int>(UpdateKind::kOuterProduct) == v1::OUTER_PRODUCT);
static_assert(static_cast<int>(UpdateKind::kGradient) == v1::GRADIENT);
static_assert(static_cast<int>(PushOutcome::kMalformed) == v1::ShardAck::MALFORMED);
static_assert(static_cast<int>(PushOutcome::kNotPrimary) == v1::ShardAck::NOT_PRIMARY);
static_assert(static_cast<int>(PushOutcome::kNotReady) == v1::ShardAck::NOT_READY);
static_assert(static_cast<int>(PushOutcome::kNotFinite) == v1::ShardAck::NOT_FINITE);
static_assert(static_cast<int>(FetchOutcome::kNotReady) == v1::ShardValue::NOT_READY);
static_assert(static_cast<int>(FetchOutcome::kNoSuchSnapshot) == v1::ShardValue::NO_SUCH_SNAPSHOT);

}  // namespace

bool DecodePush(const v1::Push& header,
                const rpc::IncomingFrame& frame,
                const ShardLayout& layout,
                Scratch& scratch,
                Push& push) {
  FloatReader reader(frame, scratch);
  push.job_examples = header.job_examples();
  for (const v1::Operands& operands : header.operands()) {
    if (!DecodeOperands(operands, reader, push.operands.emplace_back())) {
      return false;
    }
  }
  for (const v1::ShardUpdate& update : header.updates()) {
    if (!DecodeUpdate(update, layout, reader, push.updates.emplace_back())) {
      return false;
    }
  }
  return reader.AtEnd();
}

void EncodeAcks(std::span<const ShardAck> acks, v1::PushReply& reply) {
  for (const ShardAck& ack : acks) {
    v1::ShardAck& out = *reply.add_acks();
    out.set_shard(ack.shard);
    out.set_outcome(static_cast<v1::ShardAck::Outcome>(ack.outcome));
    out.set_expected(ack.expected);
    out.set_version(ack.version);
    out.set_staleness(ack.staleness);
  }
}

void EncodeValues(std::span<const ShardValue> values,
                  v1::FetchReply& reply,
                  std::vector<rpc::LentBytes>& payload) {
  for (const ShardValue& value : values) {
    v1::ShardValue& out = *reply.add_values();
    out.set_shard(value.shard);
    out.set_outcome(static_cast<v1::ShardValue::Outcome>(value.outcome));
    out.set_version(value.version);
    out.set_included_sequence(value.included_sequence);
    out.set_elements(value.values.size());
    if (!value.values.empty()) {
      payload.push_back({std::as_bytes(value.values), value.owner});
    }
  }
}

std::vector<BucketRecord> BucketsOf(const v1::Membership& membership) {
  std::vector<BucketRecord> buckets;
  for (const v1::Bucket& bucket : membership.buckets()) {
    buckets.push_back(
        {.epoch = bucket.epoch(), .primary = bucket.primary().slot(), .created = bucket.created()});
  }
  return buckets;
}

}  // namespace adamant::parameter_server
