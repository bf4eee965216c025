#include "tests/bench/servers/worker_stream.h"

#include <utility>

#include "services/common/base/check.h"
#include "services/parameter_server/rpc/workers/exchange.h"

namespace adamant::parameter_server {
namespace {

constexpr char kExchangeMethod[] = "/adamant.v1.ParameterServer/Exchange";

}  // namespace

WorkerStream::WorkerStream(const std::string& address, std::uint64_t job_uid)
    : stream_(rpc::OpenFrameStream(
          address, kExchangeMethod, kMaxExchangeBytes, {}, std::to_string(job_uid))) {
  v1::ExchangeRequest hello;
  hello.mutable_hello()->set_format_version(1);
  hello.mutable_hello()->set_job_uid(job_uid);
  Send(hello, {});
  Receive();
}

WorkerStream::~WorkerStream() { stream_->Cancel(); }

void WorkerStream::Send(const v1::ExchangeRequest& request, std::vector<rpc::LentBytes> payload) {
  ADAMANT_CHECK(stream_->Write({request.SerializeAsString(), std::move(payload)}).ok(), "sent");
}

v1::ExchangeReply WorkerStream::ReceiveReply(std::uint64_t& payload_bytes) {
  const auto frame = stream_->Read();
  ADAMANT_CHECK(frame.ok(), frame.status().ToString());
  payload_bytes = frame->payload_bytes();
  v1::ExchangeReply reply;
  ADAMANT_CHECK(reply.ParseFromString(std::string(frame->header())), "an answer");
  ADAMANT_CHECK(reply.hello().refused().empty(), reply.hello().refused());
  return reply;
}

std::uint64_t WorkerStream::Receive() {
  std::uint64_t payload_bytes = 0;
  const v1::ExchangeReply reply = ReceiveReply(payload_bytes);
  for (const v1::ShardAck& ack : reply.push().acks()) {
    ADAMANT_CHECK(ack.outcome() == v1::ShardAck::APPLIED, "every update is applied");
  }
  return payload_bytes;
}

void WorkerStream::PushUntilApplied(const v1::ExchangeRequest& push,
                                    const std::vector<rpc::LentBytes>& payload) {
  for (bool applied = false; !applied;) {
    Send(push, payload);
    std::uint64_t payload_bytes = 0;
    const v1::ExchangeReply reply = ReceiveReply(payload_bytes);
    applied = true;
    for (const v1::ShardAck& ack : reply.push().acks()) {
      applied = applied && ack.outcome() <= v1::ShardAck::DUPLICATE;
    }
  }
}

}  // namespace adamant::parameter_server
