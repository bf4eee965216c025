#include "services/parameter_server/rpc/record_methods.h"

#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/security/peer_identity.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/gate/pending.h"

namespace adamant::parameter_server {
namespace {

// A client gives up sooner and comes again; this is for those that vanish.
constexpr std::chrono::seconds kLongestPut(30);

// A key and numbers; what is a little too long the core refuses, and says why.
constexpr std::uint64_t kMaxGetBytes = 1024;
constexpr std::uint64_t kMaxPutBytes = kMaxRecordBytes + kMaxGetBytes;

// Reads a request for this server's job and attempt.
template <class Request>
absl::Status Parse(const std::string& bytes, const CoreGate::Pass& core, Request& request) {
  if (!request.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("the request is no " + Request::descriptor()->name());
  }
  if (!core) {
    return absl::UnavailableError("the parameter server is starting or stopping");
  }
  const std::string refusal =
      WhyRefused(core->options().job_attempt(),
                 {.job_uid = request.job_uid(), .attempt = AttemptOf(request.attempt())});
  return refusal.empty() ? absl::OkStatus() : absl::FailedPreconditionError(refusal);
}

template <class Request>
std::string JobOf(std::string_view bytes) {
  Request request;
  request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  return std::to_string(request.job_uid());
}

// For the replies of both calls.
template <class Reply>
bool IsReady(Access access, Reply& reply) {
  if (access == Access::kReady) {
    return true;
  }
  reply.set_outcome(access == Access::kNotPrimary ? Reply::NOT_PRIMARY : Reply::NOT_READY);
  return false;
}

absl::StatusOr<std::string> GetRecord(CoreGate& gate, const std::string& bytes) {
  const CoreGate::Pass core = gate.Enter();
  v1::GetRecordRequest request;
  ADAMANT_RETURN_IF_ERROR(Parse(bytes, core, request));
  RecordAnswer answer = core->records().Get(request.key());
  v1::GetRecordReply reply;
  if (IsReady(answer.access, reply)) {
    reply.set_outcome(answer.record.version == 0 ? v1::GetRecordReply::ABSENT
                                                 : v1::GetRecordReply::FOUND);
    reply.set_version(answer.record.version);
    reply.set_value(std::move(answer.record.value));
  }
  return reply.SerializeAsString();
}

// Of the part in a record's key, "ledger/PART"; nothing of another key.
std::optional<std::uint32_t> PartOf(std::string_view key) {
  constexpr std::string_view kPrefix = "ledger/";
  if (!key.starts_with(kPrefix)) {
    return std::nullopt;
  }
  key.remove_prefix(kPrefix.size());
  std::uint32_t part = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), part);
  return error == std::errc() && end == key.data() + key.size() ? std::optional(part)
                                                                : std::nullopt;
}

// Whether a data server may write a record.
absl::Status CheckWriter(const security::PeerIdentity* writer,
                         std::string_view key,
                         const PartOwner& owner) {
  if (writer == nullptr) {
    return absl::OkStatus();
  }
  const std::optional<std::uint32_t> part = PartOf(key);
  if (part.has_value() && owner(*part) == writer->slot) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(security::FormatIdentity(*writer) +
                                     " may not write a record of a part that is not its own");
}

absl::StatusOr<std::string> PutRecord(CoreGate& gate,
                                      const PartOwner& owner,
                                      const std::string& bytes,
                                      const rpc::Caller& caller) {
  const auto pending = std::make_shared<Pending<RecordAnswer>>();
  {
    const CoreGate::Pass core = gate.Enter();
    v1::PutRecordRequest request;
    ADAMANT_RETURN_IF_ERROR(Parse(bytes, core, request));
    ADAMANT_RETURN_IF_ERROR(CheckWriter(caller.identity, request.key(), owner));
    ADAMANT_RETURN_IF_ERROR(
        core->records().Put(request.key(),
                            request.expected_version(),
                            request.value(),
                            [pending](const RecordAnswer& answer) { pending->Set(answer); }));
  }
  const auto deadline = std::chrono::steady_clock::now() + kLongestPut;
  const auto answer = pending->Wait([&] {
    return caller.cancelled() || !gate.is_open() || std::chrono::steady_clock::now() >= deadline;
  });
  if (!answer.has_value()) {
    return absl::UnavailableError("the record could not be stored in time");
  }
  v1::PutRecordReply reply;
  if (IsReady(answer->access, reply)) {
    reply.set_outcome(answer->stored ? v1::PutRecordReply::STORED
                                     : v1::PutRecordReply::VERSION_CONFLICT);
    reply.set_version(answer->record.version);
  }
  return reply.SerializeAsString();
}

}  // namespace

std::vector<rpc::UnaryMethod> RecordMethods(CoreGate& gate,
                                            const service::MemberGenerations& members,
                                            PartOwner owner) {
  const std::string service = "/adamant.v1.ParameterServer/";
  return {{.name = service + "GetRecord",
           .max_request_bytes = kMaxGetBytes,
           .handler = [&gate](const std::string& request,
                              const rpc::Caller&) { return GetRecord(gate, request); },
           .job_of = JobOf<v1::GetRecordRequest>},
          {.name = service + "PutRecord",
           .max_request_bytes = kMaxPutBytes,
           .handler = [&gate, &members, owner = std::move(owner)](
                          const std::string& request,
                          const rpc::Caller& caller) -> absl::StatusOr<std::string> {
             ADAMANT_RETURN_IF_ERROR(members.CheckPresent(caller.identity));
             return PutRecord(gate, owner, request, caller);
           },
           .job_of = JobOf<v1::PutRecordRequest>}};
}

}  // namespace adamant::parameter_server
