// adamant-data-server: hands out a job's examples under leases.

#include "proto/adamant/v1/control.pb.h"
#include "services/common/service/service.h"
#include "services/data_server/rpc/data_server_service.h"

int main(int argc, char** argv) {
  return adamant::service::RunService(
      argc, argv, adamant::v1::DATA_SERVER, adamant::data_server::MakeDataServer);
}
