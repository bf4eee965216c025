#include "services/parameter_server/rpc/exchange.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/rpc/convert.h"
#include "services/parameter_server/rpc/pending.h"

namespace adamant::parameter_server {
namespace {

constexpr std::uint32_t kFormatVersion = 1;

/// One stream's state.
class Exchange {
 public:
  Exchange(CoreGate& gate, const TrafficMetrics& metrics, rpc::FrameStream& stream)
      : gate_(gate), metrics_(metrics), stream_(stream) {}

  absl::Status Handle(rpc::IncomingFrame frame, rpc::OutgoingFrame& reply);

  /// The client was refused: the stream ends after the reply.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  absl::Status HandleHello(const v1::ExchangeHello& hello, v1::ExchangeHelloReply& reply);
  absl::Status HandlePush(const v1::Push& push, rpc::IncomingFrame frame, v1::PushReply& reply);
  absl::StatusOr<std::vector<ShardAck>> Apply(const v1::Push& header, rpc::IncomingFrame frame);
  absl::Status HandleFetch(const v1::Fetch& fetch,
                           v1::FetchReply& reply,
                           std::vector<rpc::LentBytes>& payload);
  absl::Status HandleFlush(const v1::FlushRequest& flush, v1::FlushReply& reply);
  void Count(const std::vector<ShardAck>& acks) const;

  CoreGate& gate_;
  const TrafficMetrics& metrics_;
  rpc::FrameStream& stream_;
  bool greeted_ = false;
  bool refused_ = false;
  std::optional<Writer> writer_;  // none: only fetches
};

absl::Status Closed() {
  return absl::UnavailableError("the parameter server is starting or stopping");
}

absl::Status ReadOnly() {
  return absl::InvalidArgumentError("a push or a flush on a stream that is only for fetches");
}

absl::Status Exchange::Handle(rpc::IncomingFrame frame, rpc::OutgoingFrame& out) {
  v1::ExchangeRequest request;
  if (!request.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InvalidArgumentError("the header of a frame is no ExchangeRequest");
  }
  if (greeted_ == request.has_hello()) {
    return absl::InvalidArgumentError("a stream begins with one ExchangeHello");
  }
  v1::ExchangeReply reply;
  reply.set_id(request.id());
  absl::Status status;
  switch (request.kind_case()) {
    case v1::ExchangeRequest::kHello:
      status = HandleHello(request.hello(), *reply.mutable_hello());
      break;
    case v1::ExchangeRequest::kPush:
      status = HandlePush(request.push(), std::move(frame), *reply.mutable_push());
      break;
    case v1::ExchangeRequest::kFetch:
      status = HandleFetch(request.fetch(), *reply.mutable_fetch(), out.payload);
      break;
    case v1::ExchangeRequest::kFlush:
      status = HandleFlush(request.flush(), *reply.mutable_flush());
      break;
    default:
      status = absl::InvalidArgumentError("a request of an unknown kind");
  }
  out.header = reply.SerializeAsString();
  return status;
}

// Why the client is refused; empty when it is not.
std::string Refusal(const v1::ExchangeHello& hello, const ParameterServer& core) {
  if (hello.format_version() != kFormatVersion) {
    return "this server speaks format version " + std::to_string(kFormatVersion) +
           ", the client version " + std::to_string(hello.format_version());
  }
  if (hello.job_uid() != core.job_uid()) {
    return "this server belongs to job " + std::to_string(core.job_uid()) + ", the client to job " +
           std::to_string(hello.job_uid());
  }
  return "";
}

absl::Status Exchange::HandleHello(const v1::ExchangeHello& hello, v1::ExchangeHelloReply& reply) {
  const CoreGate::Pass core = gate_.Enter();
  if (!core) {
    return Closed();
  }
  greeted_ = true;
  std::string refusal = Refusal(hello, *core);
  if (refusal.empty() && !hello.read_only()) {
    writer_ = {.slot = hello.worker_slot(), .incarnation = hello.worker_incarnation()};
    refusal = std::string(core->Admit(*writer_).message());
    reply.set_stale(!refusal.empty());
  }
  refused_ = !refusal.empty();
  reply.set_refused(refusal);
  return absl::OkStatus();
}

absl::Status Exchange::HandlePush(const v1::Push& header,
                                  rpc::IncomingFrame frame,
                                  v1::PushReply& reply) {
  if (!writer_) {
    return ReadOnly();
  }
  const auto start = std::chrono::steady_clock::now();
  metrics_.push_bytes.Increment(static_cast<double>(frame.payload_bytes()));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<ShardAck> acks, Apply(header, std::move(frame)));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  metrics_.apply_seconds.Observe(seconds.count());
  Count(acks);
  EncodeAcks(acks, reply);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ShardAck>> Exchange::Apply(const v1::Push& header,
                                                      rpc::IncomingFrame frame) {
  const auto pending = std::make_shared<Pending<std::vector<ShardAck>>>();
  {
    const CoreGate::Pass core = gate_.Enter();
    if (!core) {
      return Closed();
    }
    Push push{.writer = *writer_};
    if (DecodePush(header, rpc::JoinPayload(std::move(frame)), core->layout(), push)) {
      core->Submit(push, [pending](std::vector<ShardAck> acks) { pending->Set(std::move(acks)); });
    } else {
      std::vector<ShardAck> acks;
      for (const v1::ShardUpdate& update : header.updates()) {
        acks.push_back({.shard = update.shard(), .outcome = PushOutcome::kMalformed});
      }
      pending->Set(std::move(acks));
    }
  }
  // Without a pass: the answer may never come, and must not keep the server from stopping.
  auto acks = pending->Wait([this] { return stream_.Cancelled() || !gate_.is_open(); });
  if (!acks.has_value()) {
    return stream_.Cancelled() ? absl::CancelledError("the stream was cancelled") : Closed();
  }
  return *std::move(acks);
}

void Exchange::Count(const std::vector<ShardAck>& acks) const {
  for (const ShardAck& ack : acks) {
    metrics_.updates[static_cast<std::size_t>(ack.outcome)].Increment();
    if (ack.outcome == PushOutcome::kApplied) {
      metrics_.staleness.Observe(static_cast<double>(ack.staleness));
    }
  }
}

absl::Status Exchange::HandleFetch(const v1::Fetch& fetch,
                                   v1::FetchReply& reply,
                                   std::vector<rpc::LentBytes>& payload) {
  const CoreGate::Pass core = gate_.Enter();
  if (!core) {
    return Closed();
  }
  std::uint64_t bytes = 0;
  for (const ShardId shard : fetch.shards()) {
    if (shard < core->layout().shards().size()) {
      bytes += core->layout().shards()[shard].size() * sizeof(float);
    }
  }
  if (bytes > kMaxExchangeBytes) {
    return absl::InvalidArgumentError("a fetch of " + std::to_string(bytes) + " bytes; at most " +
                                      std::to_string(kMaxExchangeBytes) + " go into one reply");
  }
  const std::vector<ShardId> shards(fetch.shards().begin(), fetch.shards().end());
  ADAMANT_ASSIGN_OR_RETURN(const auto values,
                           core->Fetch(writer_ ? &*writer_ : nullptr, shards, fetch.snapshot()));
  metrics_.fetch_bytes.Increment(static_cast<double>(bytes));
  EncodeValues(values, reply, payload);
  return absl::OkStatus();
}

absl::Status Exchange::HandleFlush(const v1::FlushRequest& flush, v1::FlushReply& reply) {
  if (!writer_) {
    return ReadOnly();
  }
  const CoreGate::Pass core = gate_.Enter();
  if (!core) {
    return Closed();
  }
  const std::vector<ShardId> shards(flush.shards().begin(), flush.shards().end());
  const std::vector<std::uint64_t> persisted = core->RequestFlush(*writer_, shards);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    v1::Persisted& out = *reply.add_persisted();
    out.set_shard(shards[i]);
    out.set_sequence(persisted[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServeExchange(CoreGate& gate,
                           const TrafficMetrics& metrics,
                           rpc::FrameStream& stream) {
  Exchange exchange(gate, metrics, stream);
  while (!exchange.refused()) {
    auto frame = stream.Read();
    if (absl::IsOutOfRange(frame.status())) {
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(frame.status());
    rpc::OutgoingFrame reply;
    ADAMANT_RETURN_IF_ERROR(exchange.Handle(*std::move(frame), reply));
    ADAMANT_RETURN_IF_ERROR(stream.Write(std::move(reply)));
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
