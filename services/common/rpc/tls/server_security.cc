#include "services/common/rpc/tls/server_security.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>

#include <atomic>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/security/authorisation.h"

namespace adamant::rpc {
namespace {

// Of one listener, owned by gRPC's credentials.
struct SecuredListener {
  ServerSecurity security;
  std::atomic<std::uint64_t> given_version = 0;  // of the identity
};

// Gives gRPC the certificates for the handshake that begins, which it asks for one at a time.
grpc_ssl_certificate_config_reload_status GiveIdentity(
    void* user_data, grpc_ssl_server_certificate_config** config) {
  auto& listener = *static_cast<SecuredListener*>(user_data);
  const auto identity = listener.security.identity->Get();
  if (listener.given_version.exchange(identity->version) == identity->version) {
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  }
  const grpc_ssl_pem_key_cert_pair pair{.private_key = identity->key.c_str(),
                                        .cert_chain = identity->chain.c_str()};
  *config = grpc_ssl_server_certificate_config_create(identity->roots.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

std::string_view ViewOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Empty where there is none.
std::string_view MethodOf(const grpc_metadata* metadata, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (ViewOf(metadata[i].key) == ":path") {
      return ViewOf(metadata[i].value);
    }
  }
  return "";
}

// Empty where it has none, or several.
std::string_view UriOf(const grpc_auth_context* context) {
  grpc_auth_property_iterator properties =
      grpc_auth_context_find_properties_by_name(context, GRPC_PEER_SPIFFE_ID_PROPERTY_NAME);
  const grpc_auth_property* const uri = grpc_auth_property_iterator_next(&properties);
  const bool is_one = uri != nullptr && grpc_auth_property_iterator_next(&properties) == nullptr;
  return is_one ? std::string_view(uri->value, uri->value_length) : std::string_view();
}

absl::Status Judge(const ServerSecurity& security, std::string_view method, std::string_view uri) {
  if (!security.method_of_strangers.empty()) {
    return method == security.method_of_strangers
               ? absl::OkStatus()
               : absl::PermissionDeniedError(std::string(method.substr(0, 256)) +
                                             ": not a method of this port");
  }
  const absl::StatusOr<security::PeerIdentity> caller = security::ParseIdentity(uri);
  return caller.ok()
             ? security::Authorise(method, *caller, security.identity->Get()->content.identity)
             : absl::UnauthenticatedError("the caller has no identity");
}

// Looks at a call before anything of it is read.
void LookAtCall(void* state,
                grpc_auth_context* context,
                const grpc_metadata* metadata,
                std::size_t size,
                grpc_process_auth_metadata_done_cb done,
                void* user_data) {
  const ServerSecurity& security = static_cast<const SecuredListener*>(state)->security;
  const std::string_view method = MethodOf(metadata, size);
  const std::string_view uri = UriOf(context);
  const absl::Status verdict = Judge(security, method, uri);
  const std::string why(verdict.message());
  if (!verdict.ok() && security.on_refused) {
    security.on_refused({.method = method, .peer = uri, .why = why});
  }
  done(user_data,
       nullptr,
       0,
       nullptr,
       0,
       static_cast<grpc_status_code>(verdict.code()),
       verdict.ok() ? nullptr : why.c_str());
}

void DestroyListener(void* state) { delete static_cast<SecuredListener*>(state); }

// gRPC's C++ credentials read certificates once or from files; those of its C functions ask for
// them at each handshake.
class TlsServerCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsServerCredentials(const ServerSecurity& security) {
    auto* const listener = new SecuredListener{.security = security};
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            security.method_of_strangers.empty()
                ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            GiveIdentity,
            listener));
    // Destroys the listener with the credentials, which handshakes hold beyond this.
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {.process = LookAtCall, .destroy = DestroyListener, .state = listener});
  }
  ~TlsServerCredentials() override { grpc_server_credentials_release(credentials_); }
  TlsServerCredentials(const TlsServerCredentials&) = delete;
  TlsServerCredentials& operator=(const TlsServerCredentials&) = delete;

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecurity& security) {
  ADAMANT_CHECK(security.identity->Get() != nullptr, "a server without a certificate");
  return std::make_shared<TlsServerCredentials>(security);
}

std::optional<security::CertificateContent> PeerOf(const grpc::AuthContext& context) {
  const auto certificates = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (certificates.size() != 1) {
    return std::nullopt;
  }
  auto content =
      security::ReadCertificate({certificates.front().data(), certificates.front().size()});
  return content.ok() ? std::optional(*std::move(content)) : std::nullopt;
}

}  // namespace adamant::rpc
