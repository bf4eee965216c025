#include "services/parameter_server/rpc/exchange.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/rpc/convert.h"

namespace adamant::parameter_server {
namespace {

constexpr std::uint32_t kFormatVersion = 1;

/// One stream's state.
class Exchange {
 public:
  Exchange(CoreGate& gate, const TrafficMetrics& metrics) : gate_(gate), metrics_(metrics) {}

  absl::Status Handle(const rpc::IncomingFrame& frame, rpc::OutgoingFrame& reply);

  /// The client was refused: the stream ends after the reply.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  std::string Hello(const v1::ExchangeHello& hello, ParameterServer& core);
  absl::Status HandlePush(const v1::Push& push,
                          const rpc::IncomingFrame& frame,
                          ParameterServer& core,
                          v1::PushReply& reply);
  absl::Status HandleFetch(const v1::Fetch& fetch,
                           ParameterServer& core,
                           v1::FetchReply& reply,
                           std::vector<rpc::LentBytes>& payload);

  CoreGate& gate_;
  const TrafficMetrics& metrics_;
  Scratch scratch_;
  bool greeted_ = false;
  bool refused_ = false;
  std::optional<Writer> writer_;  // none: only fetches
};

absl::Status Exchange::Handle(const rpc::IncomingFrame& frame, rpc::OutgoingFrame& out) {
  v1::ExchangeRequest request;
  if (!request.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InvalidArgumentError("the header of a frame is no ExchangeRequest");
  }
  if (greeted_ == request.has_hello()) {
    return absl::InvalidArgumentError("a stream begins with one ExchangeHello");
  }
  const CoreGate::Pass core = gate_.Enter();
  if (!core) {
    return absl::UnavailableError("the parameter server is starting or stopping");
  }
  v1::ExchangeReply reply;
  reply.set_id(request.id());
  absl::Status status;
  switch (request.kind_case()) {
    case v1::ExchangeRequest::kHello: {
      const std::string refusal = Hello(request.hello(), *core);
      greeted_ = true;
      refused_ = !refusal.empty();
      reply.mutable_hello()->set_refused(refusal);
      break;
    }
    case v1::ExchangeRequest::kPush:
      status = HandlePush(request.push(), frame, *core, *reply.mutable_push());
      break;
    case v1::ExchangeRequest::kFetch:
      status = HandleFetch(request.fetch(), *core, *reply.mutable_fetch(), out.payload);
      break;
    default:
      status = absl::InvalidArgumentError("a request of an unknown kind");
  }
  out.header = reply.SerializeAsString();
  return status;
}

std::string Exchange::Hello(const v1::ExchangeHello& hello, ParameterServer& core) {
  if (hello.format_version() != kFormatVersion) {
    return "this server speaks format version " + std::to_string(kFormatVersion) +
           ", the client version " + std::to_string(hello.format_version());
  }
  if (hello.job_uid() != core.job_uid()) {
    return "this server belongs to job " + std::to_string(core.job_uid()) + ", the client to job " +
           std::to_string(hello.job_uid());
  }
  if (hello.read_only()) {
    return "";
  }
  const Writer writer{.slot = hello.worker_slot(), .incarnation = hello.worker_incarnation()};
  if (const absl::Status admitted = core.Admit(writer); !admitted.ok()) {
    return std::string(admitted.message());
  }
  writer_ = writer;
  return "";
}

absl::Status Exchange::HandlePush(const v1::Push& header,
                                  const rpc::IncomingFrame& frame,
                                  ParameterServer& core,
                                  v1::PushReply& reply) {
  if (!writer_) {
    return absl::InvalidArgumentError("a push on a stream that is only for fetches");
  }
  const auto start = std::chrono::steady_clock::now();
  Push push{.writer = *writer_};
  std::vector<ShardAck> acks;
  if (DecodePush(header, frame, core.layout(), scratch_, push)) {
    acks = core.Apply(push);
  } else {
    for (const v1::ShardUpdate& update : header.updates()) {
      acks.push_back({.shard = update.shard(), .outcome = PushOutcome::kMalformed});
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  metrics_.apply_seconds.Observe(seconds.count());
  metrics_.push_bytes.Increment(static_cast<double>(frame.payload_bytes()));
  for (const ShardAck& ack : acks) {
    metrics_.updates[static_cast<std::size_t>(ack.outcome)].Increment();
    if (ack.outcome == PushOutcome::kApplied) {
      metrics_.staleness.Observe(static_cast<double>(ack.staleness));
    }
  }
  EncodeAcks(acks, reply);
  return absl::OkStatus();
}

absl::Status Exchange::HandleFetch(const v1::Fetch& fetch,
                                   ParameterServer& core,
                                   v1::FetchReply& reply,
                                   std::vector<rpc::LentBytes>& payload) {
  std::uint64_t bytes = 0;
  for (const ShardId shard : fetch.shards()) {
    if (shard < core.layout().shards().size()) {
      bytes += core.layout().shards()[shard].size() * sizeof(float);
    }
  }
  if (bytes > kMaxExchangeBytes) {
    return absl::InvalidArgumentError("a fetch of " + std::to_string(bytes) + " bytes; at most " +
                                      std::to_string(kMaxExchangeBytes) + " go into one reply");
  }
  const std::vector<ShardId> shards(fetch.shards().begin(), fetch.shards().end());
  ADAMANT_ASSIGN_OR_RETURN(const auto values,
                           core.Fetch(writer_ ? &*writer_ : nullptr, shards, fetch.snapshot()));
  metrics_.fetch_bytes.Increment(static_cast<double>(bytes));
  EncodeValues(values, reply, payload);
  return absl::OkStatus();
}

}  // namespace

absl::Status ServeExchange(CoreGate& gate,
                           const TrafficMetrics& metrics,
                           rpc::FrameStream& stream) {
  Exchange exchange(gate, metrics);
  while (!exchange.refused()) {
    auto frame = stream.Read();
    if (absl::IsOutOfRange(frame.status())) {
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(frame.status());
    rpc::OutgoingFrame reply;
    ADAMANT_RETURN_IF_ERROR(exchange.Handle(*frame, reply));
    ADAMANT_RETURN_IF_ERROR(stream.Write(std::move(reply)));
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
