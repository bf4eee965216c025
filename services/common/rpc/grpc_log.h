#pragma once

namespace adamant::rpc {

/// Makes gRPC's own error messages lines of our log. Call once, early in main.
void RouteGrpcLog();

}  // namespace adamant::rpc
