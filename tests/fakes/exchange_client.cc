#include "tests/fakes/exchange_client.h"

#include <span>
#include <string>

#include "services/common/base/ids.h"
#include "services/common/base/status_macros.h"

namespace adamant::fakes {

absl::StatusOr<ExchangeClient::Reply> ExchangeClient::Call(v1::ExchangeRequest request,
                                                           std::vector<float> values) {
  request.set_id(++last_id_);
  const auto lent = std::make_shared<const std::vector<float>>(std::move(values));
  ADAMANT_RETURN_IF_ERROR(stream_->Write({.header = request.SerializeAsString(),
                                          .payload = {{std::as_bytes(std::span(*lent)), lent}}}));
  ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame frame, stream_->Read());
  Reply reply;
  if (!reply.header.ParseFromString(std::string(frame.header())) || reply.header.id() != last_id_) {
    return absl::InternalError("not the answer to the last request");
  }
  reply.values.resize(frame.payload_bytes() / sizeof(float));
  rpc::PayloadReader reader(frame);
  ADAMANT_RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(reply.values))));
  return reply;
}

absl::StatusOr<std::string> ExchangeClient::Hello(std::uint64_t job_uid,
                                                  std::uint32_t slot,
                                                  Incarnation incarnation) {
  v1::ExchangeRequest request;
  request.mutable_hello()->set_format_version(1);
  request.mutable_hello()->set_job_uid(job_uid);
  request.mutable_hello()->set_worker_slot(slot);
  request.mutable_hello()->set_worker_incarnation(incarnation);
  ADAMANT_ASSIGN_OR_RETURN(const Reply reply, Call(request));
  return reply.header.hello().refused();
}

}  // namespace adamant::fakes
