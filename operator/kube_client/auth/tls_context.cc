#include "operator/kube_client/auth/tls_context.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

template <class T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* object) const { Free(object); }
};
using Certificate = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE, X509_STORE_free>>;

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioDeleter>;

Bio Reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// OpenSSL's reason for the last error of this thread.
std::string Reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

/// No key is ever asked for a pass phrase at a terminal.
int NoPassPhrase(char*, int, int, void*) { return 0; }

/// All certificates in `pem`, which must hold one at least.
absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& pem,
                                                          const std::string& what) {
  const Bio reader = Reader(pem);
  std::vector<Certificate> certificates;
  while (X509* read = PEM_read_bio_X509(reader.get(), nullptr, NoPassPhrase, nullptr)) {
    certificates.emplace_back(read);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = Reason();
  if (certificates.empty() || !at_end) {
    return absl::InvalidArgumentError(what + ": cannot be read as PEM certificates: " + reason);
  }
  return certificates;
}

bool IsAddress(const std::string& name) {
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(AF_INET, name.c_str(), address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address) == 1;
}

}  // namespace

struct TlsContext::Impl {
  TlsOptions options;
  bool is_address = false;  // the server's name
  Store store;              // null: the system's
  std::vector<Certificate> chain;
  Key key;

  mutable Mutex mutex;
  mutable std::string refusal ABSL_GUARDED_BY(mutex);

  /// Verifies in place of OpenSSL's default and of callbacks that are set on the connection.
  static int Verify(X509_STORE_CTX* verification, void* impl) {
    return static_cast<const Impl*>(impl)->Verify(verification) ? 1 : 0;
  }

  bool Verify(X509_STORE_CTX* verification) const {
    if (options.insecure_skip_verify) {
      return true;
    }
    X509_STORE_CTX_set_verify_cb(verification, [](int ok, X509_STORE_CTX*) { return ok; });
    X509_VERIFY_PARAM* wanted = X509_STORE_CTX_get0_param(verification);
    const std::string& name = options.server_name;
    const int named = is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str())
                                 : X509_VERIFY_PARAM_set1_host(wanted, name.data(), name.size());
    if (named == 1 && X509_verify_cert(verification) == 1) {
      return true;
    }
    const MutexLock lock(mutex);
    refusal = X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification));
    refusal += " (for " + name + ")";
    return false;
  }
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Make(const TlsMaterial& material,
                                                                   TlsOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->is_address = IsAddress(options.server_name);
  impl->options = std::move(options);
  if (!material.authorities.empty()) {
    ADAMANT_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                             ReadCertificates(material.authorities, "certificate authorities"));
    impl->store.reset(X509_STORE_new());
    for (const Certificate& authority : authorities) {
      X509_STORE_add_cert(impl->store.get(), authority.get());
    }
    // What is given is trusted, also if it is not self-signed: as by kubectl.
    X509_STORE_set_flags(impl->store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (!material.certificate.empty()) {
    ADAMANT_ASSIGN_OR_RETURN(impl->chain,
                             ReadCertificates(material.certificate, "client certificate"));
    impl->key.reset(
        PEM_read_bio_PrivateKey(Reader(material.key).get(), nullptr, NoPassPhrase, nullptr));
    if (impl->key == nullptr) {
      return absl::InvalidArgumentError(
          "client key: cannot be read as a PEM key without a pass phrase: " + Reason());
    }
    if (X509_check_private_key(impl->chain.front().get(), impl->key.get()) != 1) {
      ERR_clear_error();
      return absl::InvalidArgumentError("client key: is not the key of the client certificate");
    }
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(impl)));
}

absl::Status TlsContext::ApplyTo(SSL_CTX* context) const {
  bool done = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
  if (impl_->store != nullptr) {
    SSL_CTX_set1_cert_store(context, impl_->store.get());
  }
  if (!impl_->chain.empty()) {
    done = done && SSL_CTX_use_certificate(context, impl_->chain.front().get()) == 1 &&
           SSL_CTX_use_PrivateKey(context, impl_->key.get()) == 1;
    for (std::size_t i = 1; i < impl_->chain.size(); ++i) {
      done = done && SSL_CTX_add1_chain_cert(context, impl_->chain[i].get()) == 1;
    }
  }
  SSL_CTX_set_cert_verify_callback(context, &Impl::Verify, impl_.get());
  return done ? absl::OkStatus()
              : absl::InternalError("TLS: the context cannot be set up: " + Reason());
}

void TlsContext::NameServer(SSL* connection) const {
  if (!impl_->is_address) {
    SSL_set_tlsext_host_name(connection, impl_->options.server_name.c_str());
  }
}

std::string TlsContext::LastRefusal() const {
  const MutexLock lock(impl_->mutex);
  return impl_->refusal;
}

}  // namespace adamant::kube
