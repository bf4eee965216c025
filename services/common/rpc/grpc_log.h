#pragma once

namespace adamant::rpc {

/// Makes gRPC's own error messages lines of our log. Call once, early in main.
void RouteGrpcLog();

/// Keeps gRPC's threads until the process ends. To end them with the last of its objects, as it
/// does by itself, can take 10 s, for which one of them may sleep. Call once; its threads have the
/// signal mask of the caller.
void KeepGrpc();

}  // namespace adamant::rpc
