#include "services/common/rpc/grpc_log.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <string_view>

#include "services/common/base/log.h"
#include "services/common/base/system/process.h"
#include "services/common/rpc/tls/failed_handshakes.h"

namespace adamant::rpc {
namespace {

// After which gRPC aborts; of threads that it cannot start, where that is what is asserted.
bool IsAssertion(std::string_view message) { return message.starts_with("assertion failed"); }
bool IsOfThreads(std::string_view message) { return message.ends_with("created()"); }

// Of a server that has one certificate for whatever name it is called by; of each connection.
bool IsOfNames(std::string_view message) {
  return message.starts_with("No match found for server name");
}

// Whoever called gRPC gets a status and decides whether it is an error; this is the detail.
void LogLine(gpr_log_func_args* line) {
  FailedHandshakes::OnLine(line->message);
  const bool aborts = IsAssertion(line->message);
  const LogLevel calm = IsOfNames(line->message) ? LogLevel::kDebug : LogLevel::kInfo;
  Log(aborts ? LogLevel::kError : calm,
      "gRPC",
      {{"detail", line->message}, {"file", line->file}, {"line", line->line}});
  if (aborts && IsOfThreads(line->message)) {
    ExitForLack(kNoThread);
  }
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(LogLine); }

void KeepGrpc() { grpc_init(); }

}  // namespace adamant::rpc
