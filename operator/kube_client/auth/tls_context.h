#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube_client/auth/credentials.h"

// OpenSSL's SSL_CTX and SSL.
struct ssl_ctx_st;
struct ssl_st;

namespace adamant::kube {

struct TlsOptions {
  std::string server_name;  ///< that the server's certificate must be for: a DNS name or an address
  bool insecure_skip_verify = false;  ///< take any server for the right one
};

/// Means to speak TLS with one server: whom to trust, who we are. Verifies servers itself (chain,
/// dates, name or address) and remembers why one was refused.
/// Threads: any.
class TlsContext {
 public:
  /// Errors: InvalidArgument for PEM text that cannot be read, or a key that is not the
  /// certificate's.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Make(const TlsMaterial& material,
                                                                TlsOptions options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Makes `context` trust, show and check what this says; this must outlive its handshakes. With
  /// no authorities of our own, those of the system are trusted.
  absl::Status ApplyTo(ssl_ctx_st* context) const;

  /// Before a handshake: names the server that is wanted (SNI), if it has a name.
  void NameServer(ssl_st* connection) const;

  /// Returns why the last server that was refused was refused; empty: none was.
  [[nodiscard]] std::string LastRefusal() const;

 private:
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace adamant::kube
