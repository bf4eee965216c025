// adamant-parameter-server: holds shards of a job's parameters.

#include "proto/adamant/v1/control.pb.h"
#include "services/common/service/service.h"
#include "services/parameter_server/rpc/parameter_server_service.h"

int main(int argc, char** argv) {
  return adamant::service::RunService(
      argc, argv, adamant::v1::PARAMETER_SERVER, adamant::parameter_server::MakeParameterServer);
}
