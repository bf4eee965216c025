#include "services/parameter_server/rpc/workers/exchange.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/codec/updates.h"
#include "services/common/protocol/format_versions.h"
#include "services/common/security/peer_identity.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/messages/frame_codec.h"
#include "services/parameter_server/rpc/workers/replies.h"

namespace adamant::parameter_server {
namespace {

/// One stream's state.
class Exchange {
 public:
  Exchange(CoreGate& gate,
           const service::MemberGenerations& members,
           const TrafficMetrics& metrics,
           rpc::FrameStream& stream)
      : gate_(gate),
        members_(members),
        metrics_(metrics),
        stream_(stream),
        replies_(std::make_shared<Replies>(stream)) {}
  ~Exchange() { replies_->Close(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  absl::Status Handle(rpc::IncomingFrame frame);

  /// The client sends no more: waits until it has all its answers.
  absl::Status Finish();

  /// The client was refused: the stream ends.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  absl::Status HandleHello(const v1::ExchangeHello& hello, v1::ExchangeHelloReply& reply);
  [[nodiscard]] absl::Status CheckSender(const v1::ExchangeHello& hello) const;
  std::string AdmitWriter(const v1::ExchangeHello& hello, ParameterServer& core);
  absl::Status HandlePush(const v1::ExchangeRequest& request, rpc::IncomingFrame frame);
  void Submit(const v1::ExchangeRequest& request,
              rpc::IncomingFrame frame,
              const std::vector<ShardId>& shards,
              ParameterServer& core);
  absl::Status HandleFetch(const v1::Fetch& fetch,
                           v1::FetchReply& reply,
                           std::vector<rpc::LentBytes>& payload);
  absl::Status HandleFlush(const v1::FlushRequest& flush, v1::FlushReply& reply);
  [[nodiscard]] PushDone Answering(std::uint64_t request, Replies::PushId push) const;
  [[nodiscard]] Replies::GiveUp GivingUp() const;
  [[nodiscard]] absl::Status WhyGivenUp() const;

  CoreGate& gate_;
  const service::MemberGenerations& members_;
  const TrafficMetrics& metrics_;
  rpc::FrameStream& stream_;
  const std::shared_ptr<Replies> replies_;  // shared with pushes that the core may never answer
  bool greeted_ = false;
  bool refused_ = false;
  std::optional<WorkerId> writer_;  // none: only fetches
};

void Count(std::span<const ShardAck> acks, const TrafficMetrics& metrics) {
  for (const ShardAck& ack : acks) {
    metrics.updates[static_cast<std::size_t>(ack.outcome)].Increment();
    if (ack.outcome == PushOutcome::kApplied) {
      metrics.update_staleness.Observe(static_cast<double>(ack.update_staleness));
    }
  }
}

absl::Status ReadOnly() {
  return absl::InvalidArgumentError("a push or a flush on a stream that is only for fetches");
}

absl::Status Exchange::Handle(rpc::IncomingFrame frame) {
  v1::ExchangeRequest request;
  if (!request.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InvalidArgumentError("the header of a frame is no ExchangeRequest");
  }
  if (greeted_ == request.has_hello()) {
    return absl::InvalidArgumentError("a stream begins with one ExchangeHello");
  }
  v1::ExchangeReply reply;
  reply.set_id(request.id());
  std::vector<rpc::LentBytes> payload;
  switch (request.kind_case()) {
    case v1::ExchangeRequest::kHello:
      ADAMANT_RETURN_IF_ERROR(HandleHello(request.hello(), *reply.mutable_hello()));
      break;
    case v1::ExchangeRequest::kPush:
      return HandlePush(request, std::move(frame));
    case v1::ExchangeRequest::kFetch:
      ADAMANT_RETURN_IF_ERROR(HandleFetch(request.fetch(), *reply.mutable_fetch(), payload));
      break;
    case v1::ExchangeRequest::kFlush:
      ADAMANT_RETURN_IF_ERROR(HandleFlush(request.flush(), *reply.mutable_flush()));
      break;
    default:
      return absl::InvalidArgumentError("a request of an unknown kind");
  }
  replies_->Send({.header = reply.SerializeAsString(), .payload = std::move(payload)});
  return absl::OkStatus();
}

absl::Status Exchange::Finish() {
  return replies_->AwaitAll(GivingUp()) ? absl::OkStatus() : WhyGivenUp();
}

Replies::GiveUp Exchange::GivingUp() const {
  return [this] { return stream_.Cancelled() || !gate_.is_open(); };
}

absl::Status Exchange::WhyGivenUp() const {
  return stream_.Cancelled() ? absl::CancelledError("the stream was cancelled") : GateClosed();
}

// Whether the hello is that of who has sent it. What reads says no slot.
absl::Status Exchange::CheckSender(const v1::ExchangeHello& hello) const {
  const security::PeerIdentity* const sender = stream_.peer();
  if (hello.read_only()) {
    return absl::OkStatus();
  }
  return sender != nullptr && sender->role == security::Role::kExporter
             ? absl::PermissionDeniedError(security::FormatIdentity(*sender) + " may only read")
             : members_.CheckHello(sender, hello.worker_slot(), hello.worker_incarnation());
}

// Why the client is refused; empty when it is not.
std::string Refusal(const v1::ExchangeHello& hello, const ParameterServer& core) {
  if (hello.format_version() != protocol::kExchangeFormatVersion) {
    return "this server speaks format version " + std::to_string(protocol::kExchangeFormatVersion) +
           ", the client version " + std::to_string(hello.format_version());
  }
  const JobAttempt own = core.options().job_attempt();
  return WhyRefused(own, {.job_uid = hello.job_uid(), .attempt = own.attempt});
}

// The same of one that writes, and is admitted otherwise. What another attempt left behind must not
// get in: its worker ends.
std::string Exchange::AdmitWriter(const v1::ExchangeHello& hello, ParameterServer& core) {
  std::string refusal =
      WhyRefused(core.options().job_attempt(),
                 {.job_uid = hello.job_uid(), .attempt = AttemptOf(hello.attempt())});
  if (refusal.empty()) {
    writer_ = {.slot = hello.worker_slot(), .incarnation = hello.worker_incarnation()};
    refusal = std::string(core.Admit(*writer_).message());
  }
  return refusal;
}

absl::Status Exchange::HandleHello(const v1::ExchangeHello& hello, v1::ExchangeHelloReply& reply) {
  ADAMANT_RETURN_IF_ERROR(CheckSender(hello));
  const CoreGate::Pass core = gate_.Enter();
  if (!core) {
    return GateClosed();
  }
  greeted_ = true;
  std::string refusal = Refusal(hello, *core);
  if (refusal.empty() && !hello.read_only()) {
    refusal = AdmitWriter(hello, *core);
    reply.set_stale(!refusal.empty());
  }
  refused_ = !refusal.empty();
  reply.set_refused(refusal);
  return absl::OkStatus();
}

absl::Status Exchange::HandlePush(const v1::ExchangeRequest& request, rpc::IncomingFrame frame) {
  if (!writer_) {
    return ReadOnly();
  }
  const std::uint64_t bytes = frame.payload_bytes();
  if (!replies_->AwaitRoom(bytes, GivingUp())) {
    return WhyGivenUp();
  }
  metrics_.push_bytes.Increment(static_cast<double>(bytes));
  std::vector<ShardId> shards;
  for (const v1::ShardUpdate& update : request.push().updates()) {
    shards.push_back(update.shard());
  }
  {
    const CoreGate::Pass core = gate_.Enter();
    if (!core) {
      return GateClosed();
    }
    Submit(request, std::move(frame), shards, *core);
  }
  replies_->Submitted();  // which may wait for the client
  return absl::OkStatus();
}

void Exchange::Submit(const v1::ExchangeRequest& request,
                      rpc::IncomingFrame frame,
                      const std::vector<ShardId>& shards,
                      ParameterServer& core) {
  const PushDone done = Answering(request.id(), replies_->Begin(frame.payload_bytes(), shards));
  Push push{.writer = *writer_};
  if (DecodePush(request.push(), rpc::JoinPayload(std::move(frame)), core.layout(), push)) {
    return core.Submit(push, done);
  }
  std::vector<ShardAck> acks;
  for (const ShardId shard : shards) {
    acks.push_back({.shard = shard, .outcome = PushOutcome::kMalformed});
  }
  done(std::move(acks));
}

PushDone Exchange::Answering(std::uint64_t request, Replies::PushId push) const {
  const auto start = std::chrono::steady_clock::now();
  return [=, &metrics = metrics_, replies = replies_](const std::vector<ShardAck>& acks) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    metrics.apply_seconds.Observe(seconds.count());
    Count(acks, metrics);
    v1::ExchangeReply reply;
    reply.set_id(request);
    codec::Encode(acks, *reply.mutable_push());
    replies->Answer(push, {.header = reply.SerializeAsString(), .payload = {}});
  };
}

absl::Status Exchange::HandleFetch(const v1::Fetch& fetch,
                                   v1::FetchReply& reply,
                                   std::vector<rpc::LentBytes>& payload) {
  // Without a pass: the pushes may never be answered, and must not keep the server from stopping.
  std::vector<ShardId> unanswered;
  if (fetch.snapshot() == 0) {
    unanswered =
        replies_->AwaitPushesTo(std::vector<ShardId>(fetch.shards().begin(), fetch.shards().end()));
  }
  const CoreGate::Pass core = gate_.Enter();
  if (!core) {
    return GateClosed();
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
  const std::vector<std::uint64_t> copies(fetch.copies().begin(), fetch.copies().end());
  ADAMANT_ASSIGN_OR_RETURN(
      std::vector<ShardValue> values,
      core->Fetch(writer_ ? &*writer_ : nullptr, shards, fetch.snapshot(), copies));
  for (ShardValue& value : values) {
    if (std::ranges::binary_search(unanswered, value.shard)) {
      value = {{.shard = value.shard,
                .outcome = FetchOutcome::kNotReady,
                .configuration_version = value.configuration_version}};
    }
  }
  EncodeValues(values, reply, payload);
  std::uint64_t sent = 0;
  for (const rpc::LentBytes& part : payload) {
    sent += part.bytes.size();
  }
  metrics_.fetch_bytes.Increment(static_cast<double>(sent));
  return absl::OkStatus();
}

absl::Status Exchange::HandleFlush(const v1::FlushRequest& flush, v1::FlushReply& reply) {
  if (!writer_) {
    return ReadOnly();
  }
  const CoreGate::Pass core = gate_.Enter();
  if (!core) {
    return GateClosed();
  }
  const std::vector<ShardId> shards(flush.shards().begin(), flush.shards().end());
  codec::Encode(core->RequestFlush(*writer_, shards), reply);
  return absl::OkStatus();
}

}  // namespace

std::string JobOfExchange(std::string_view header) {
  v1::ExchangeRequest request;
  request.ParseFromArray(header.data(), static_cast<int>(header.size()));
  return std::to_string(request.hello().job_uid());
}

absl::Status ServeExchange(CoreGate& gate,
                           const service::MemberGenerations& members,
                           const TrafficMetrics& metrics,
                           rpc::FrameStream& stream) {
  Exchange exchange(gate, members, metrics, stream);
  while (!exchange.refused()) {
    auto frame = stream.Read();
    if (absl::IsOutOfRange(frame.status())) {
      return exchange.Finish();
    }
    ADAMANT_RETURN_IF_ERROR(frame.status());
    ADAMANT_RETURN_IF_ERROR(exchange.Handle(*std::move(frame)));
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
