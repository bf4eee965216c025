#include "services/common/rpc/tls/channel_security.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <utility>
#include <vector>

#include "services/common/base/check.h"

namespace adamant::rpc {
namespace {

namespace tls = grpc::experimental;

// Compares the server's identity, in place of the host's name: pods have none that lasts.
class PeerVerifier final : public tls::ExternalCertificateVerifier {
 public:
  explicit PeerVerifier(security::ExpectedPeer expected) : expected_(std::move(expected)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* status) override {
    const std::vector<grpc::string_ref> uris = request->uri_names();
    const std::string_view uri =
        uris.size() == 1 ? std::string_view(uris[0].data(), uris[0].size()) : std::string_view();
    const absl::Status verdict = security::CheckPeer(expected_, uri);
    *status = verdict.ok()
                  ? grpc::Status::OK
                  : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(verdict.message()));
    return true;  // done
  }

  void Cancel(tls::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const security::ExpectedPeer expected_;
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const ChannelSecurity& security) {
  tls::TlsChannelCredentialsOptions options;
  std::vector<tls::IdentityKeyCertPair> pairs;
  std::string roots = security.roots;
  if (security.identity != nullptr) {
    const auto identity = security.identity->Get();
    ADAMANT_CHECK(identity != nullptr, "a client without a certificate");
    pairs.push_back({.private_key = identity->key, .certificate_chain = identity->chain});
    roots = identity->roots;
    options.watch_identity_key_cert_pairs();
  }
  options.watch_root_certs();
  options.set_certificate_provider(
      std::make_shared<tls::StaticDataCertificateProvider>(roots, pairs));
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<PeerVerifier>(security.peer));
  options.set_check_call_host(false);
  return tls::TlsCredentials(options);
}

}  // namespace adamant::rpc
