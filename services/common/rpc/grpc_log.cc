#include "services/common/rpc/grpc_log.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <string_view>

#include "services/common/base/log.h"
#include "services/common/base/process.h"

namespace adamant::rpc {
namespace {

// What gRPC says before it aborts as it cannot start the threads of a server.
bool IsLackOfThreads(std::string_view message) {
  return message.starts_with("assertion failed") && message.ends_with("created()");
}

// Whoever called gRPC gets a status and decides whether it is an error; this is the detail.
void LogLine(gpr_log_func_args* line) {
  LogInfo("gRPC", {{"detail", line->message}, {"file", line->file}, {"line", line->line}});
  if (IsLackOfThreads(line->message)) {
    ExitForLack(kNoThread);
  }
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(LogLine); }

void KeepGrpc() { grpc_init(); }

}  // namespace adamant::rpc
