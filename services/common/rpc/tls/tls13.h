#pragma once

namespace adamant::rpc {

/// Makes gRPC refuse versions of TLS before 1.3, at both ends, where certificates have keys of
/// elliptic curves, as ours have. It has no setting for that: of the suites for earlier versions
/// one is left to it, which needs an RSA key. Call early in main: before there are other threads,
/// and before gRPC has made credentials.
void RequireTls13();

}  // namespace adamant::rpc
