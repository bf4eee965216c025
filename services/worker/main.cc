// adamant-worker: trains its share of a job's batches.

#include <memory>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/service/service.h"
#include "services/worker/rpc/worker_service.h"

int main(int argc, char** argv) {
  using adamant::service::ServiceContext;
  return adamant::service::RunService(
      argc,
      argv,
      adamant::v1::WORKER,
      [](const ServiceContext& context)
          -> absl::StatusOr<std::unique_ptr<adamant::service::Service>> {
        return std::make_unique<adamant::worker::WorkerService>(context);
      });
}
