#include "services/common/rpc/grpc_log.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include "services/common/base/log.h"

namespace adamant::rpc {
namespace {

// Whoever called gRPC gets a status and decides whether it is an error; this is the detail.
void LogLine(gpr_log_func_args* line) {
  LogInfo("gRPC", {{"detail", line->message}, {"file", line->file}, {"line", line->line}});
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(LogLine); }

void KeepGrpc() { grpc_init(); }

}  // namespace adamant::rpc
