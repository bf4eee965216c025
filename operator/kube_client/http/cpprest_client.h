#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "operator/kube_client/http/http_client.h"

namespace adamant::kube {

/// An HttpClient (HTTP/1.1) by cpprestsdk, which only this function's source knows. It makes good
/// what the library does wrong or not at all:
/// - Servers are verified by `tls`, connections watched over by the kernel: a peer that is gone
///   without a word is noticed within 20 s, also on a stream that rightly is silent for longer.
/// - The library reads on when a piece of the body has been used, and stores nothing.
/// - A connection that the server closed while it waited is not used: Aborted. If the server closes
///   it just then, the library repeats a request without a body, which is harmless; one with a body
///   is never repeated.
/// - IPv6 addresses; no proxies, no redirects, no timer of 30 s.
/// Four threads, of the process, serve all clients.
/// Errors: InvalidArgument for a server that has no valid URL.
absl::StatusOr<std::unique_ptr<HttpClient>> MakeCpprestClient(
    const Endpoint& server, const std::shared_ptr<const TlsContext>& tls);

}  // namespace adamant::kube
