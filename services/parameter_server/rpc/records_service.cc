#include "services/parameter_server/rpc/records_service.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "proto/adamant/v1/parameter_server.grpc.pb.h"
#include "services/common/rpc/status_grpc.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/rpc/pending.h"

namespace adamant::parameter_server {
namespace {

// A client gives up sooner and comes again; this is for those that vanish.
constexpr std::chrono::seconds kLongestPut(30);

grpc::Status Closed() {
  return {grpc::StatusCode::UNAVAILABLE, "the parameter server is starting or stopping"};
}

template <class Request>
grpc::Status Check(const CoreGate::Pass& core, const Request& request) {
  if (!core) {
    return Closed();
  }
  const std::string refusal = WhyRefused(
      core->attempt(), {.job_uid = request.job_uid(), .attempt = AttemptOf(request.attempt())});
  return refusal.empty() ? grpc::Status::OK
                         : grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, refusal);
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

class RecordsService final : public v1::ParameterServer::Service {
 public:
  explicit RecordsService(CoreGate& gate) : gate_(gate) {}

  grpc::Status GetRecord(grpc::ServerContext* /*context*/,
                         const v1::GetRecordRequest* request,
                         v1::GetRecordReply* reply) override {
    const CoreGate::Pass core = gate_.Enter();
    if (grpc::Status status = Check(core, *request); !status.ok()) {
      return status;
    }
    RecordAnswer answer = core->GetRecord(request->key());
    if (IsReady(answer.access, *reply)) {
      reply->set_outcome(answer.record.version == 0 ? v1::GetRecordReply::ABSENT
                                                    : v1::GetRecordReply::FOUND);
      reply->set_version(answer.record.version);
      reply->set_value(std::move(answer.record.value));
    }
    return grpc::Status::OK;
  }

  grpc::Status PutRecord(grpc::ServerContext* context,
                         const v1::PutRecordRequest* request,
                         v1::PutRecordReply* reply) override {
    const auto pending = std::make_shared<Pending<RecordAnswer>>();
    {
      const CoreGate::Pass core = gate_.Enter();
      if (grpc::Status status = Check(core, *request); !status.ok()) {
        return status;
      }
      const absl::Status begun =
          core->PutRecord(request->key(),
                          request->expected_version(),
                          request->value(),
                          [pending](const RecordAnswer& answer) { pending->Set(answer); });
      if (!begun.ok()) {
        return rpc::ToGrpc(begun);
      }
    }
    const auto deadline = std::chrono::steady_clock::now() + kLongestPut;
    const auto answer = pending->Wait([&] {
      return context->IsCancelled() || !gate_.is_open() ||
             std::chrono::steady_clock::now() >= deadline;
    });
    if (!answer.has_value()) {
      return {grpc::StatusCode::UNAVAILABLE, "the record could not be stored in time"};
    }
    if (IsReady(answer->access, *reply)) {
      reply->set_outcome(answer->stored ? v1::PutRecordReply::STORED
                                        : v1::PutRecordReply::VERSION_CONFLICT);
      reply->set_version(answer->record.version);
    }
    return grpc::Status::OK;
  }

 private:
  CoreGate& gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRecordsService(CoreGate& gate) {
  return std::make_unique<RecordsService>(gate);
}

}  // namespace adamant::parameter_server
