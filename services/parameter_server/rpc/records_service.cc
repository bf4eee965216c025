#include "services/parameter_server/rpc/records_service.h"

#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>

#include "proto/adamant/v1/parameter_server.grpc.pb.h"
#include "services/common/rpc/status_grpc.h"
#include "services/parameter_server/core/parameter_server.h"

namespace adamant::parameter_server {
namespace {

using Access = BucketTable::Access;

grpc::Status Check(const CoreGate::Pass& core, std::uint64_t job_uid) {
  if (!core) {
    return {grpc::StatusCode::UNAVAILABLE, "the parameter server is starting or stopping"};
  }
  if (job_uid != core->job_uid()) {
    return {grpc::StatusCode::FAILED_PRECONDITION,
            "this server belongs to job " + std::to_string(core->job_uid()) +
                ", the client to job " + std::to_string(job_uid)};
  }
  return grpc::Status::OK;
}

class RecordsService final : public v1::ParameterServer::Service {
 public:
  RecordsService(CoreGate& gate, std::function<void(const absl::Status&)> fail)
      : gate_(gate), fail_(std::move(fail)) {}

  grpc::Status GetRecord(grpc::ServerContext* /*context*/,
                         const v1::GetRecordRequest* request,
                         v1::GetRecordReply* reply) override {
    const CoreGate::Pass core = gate_.Enter();
    if (grpc::Status status = Check(core, request->job_uid()); !status.ok()) {
      return status;
    }
    const Access access = core->AccessOfRecord(request->key());
    if (access != Access::kReady) {
      reply->set_outcome(access == Access::kNotPrimary ? v1::GetRecordReply::NOT_PRIMARY
                                                       : v1::GetRecordReply::NOT_READY);
      return grpc::Status::OK;
    }
    Record record = core->records().Get(request->key());
    reply->set_outcome(record.version == 0 ? v1::GetRecordReply::ABSENT
                                           : v1::GetRecordReply::FOUND);
    reply->set_version(record.version);
    reply->set_value(std::move(record.value));
    return grpc::Status::OK;
  }

  grpc::Status PutRecord(grpc::ServerContext* /*context*/,
                         const v1::PutRecordRequest* request,
                         v1::PutRecordReply* reply) override {
    const CoreGate::Pass core = gate_.Enter();
    if (grpc::Status status = Check(core, request->job_uid()); !status.ok()) {
      return status;
    }
    const Access access = core->AccessOfRecord(request->key());
    if (access != Access::kReady) {
      reply->set_outcome(access == Access::kNotPrimary ? v1::PutRecordReply::NOT_PRIMARY
                                                       : v1::PutRecordReply::NOT_READY);
      return grpc::Status::OK;
    }
    const auto put =
        core->records().Put(request->key(), request->expected_version(), request->value());
    if (absl::IsDataLoss(put.status())) {
      fail_(put.status());
    }
    if (absl::IsInvalidArgument(put.status()) || absl::IsDataLoss(put.status())) {
      return rpc::ToGrpc(put.status());
    }
    if (!put.ok()) {
      reply->set_outcome(v1::PutRecordReply::STORAGE_ERROR);
      reply->set_error(std::string(put.status().message()));
      return grpc::Status::OK;
    }
    reply->set_outcome(put->stored ? v1::PutRecordReply::STORED
                                   : v1::PutRecordReply::VERSION_CONFLICT);
    reply->set_version(put->version);
    return grpc::Status::OK;
  }

 private:
  CoreGate& gate_;
  const std::function<void(const absl::Status&)> fail_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRecordsService(CoreGate& gate,
                                                  std::function<void(const absl::Status&)> fail) {
  return std::make_unique<RecordsService>(gate, std::move(fail));
}

}  // namespace adamant::parameter_server
