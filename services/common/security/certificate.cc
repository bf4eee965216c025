#include "services/common/security/certificate.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/common/security/openssl.h"

namespace adamant::security {
namespace {

using Store = std::unique_ptr<X509_STORE, openssl::Deleter<X509_STORE, X509_STORE_free>>;
using Verification =
    std::unique_ptr<X509_STORE_CTX, openssl::Deleter<X509_STORE_CTX, X509_STORE_CTX_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, openssl::Deleter<GENERAL_NAMES, GENERAL_NAMES_free>>;

struct StackDeleter {
  void operator()(STACK_OF(X509) * certificates) const { sk_X509_free(certificates); }
};
using Stack = std::unique_ptr<STACK_OF(X509), StackDeleter>;

absl::StatusOr<PeerIdentity> IdentityOf(const X509& certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) {
    return absl::InvalidArgumentError("a certificate that does not name one subject");
  }
  const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) {
    return absl::InvalidArgumentError("a certificate of another kind of subject");
  }
  const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
  return ParseIdentity({reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                        static_cast<std::size_t>(ASN1_STRING_length(uri))});
}

absl::StatusOr<CertificateContent> ReadContent(const X509& certificate) {
  CertificateContent content;
  ADAMANT_ASSIGN_OR_RETURN(content.identity, IdentityOf(certificate));
  ADAMANT_ASSIGN_OR_RETURN(content.not_before,
                           openssl::ReadTime(X509_get0_notBefore(&certificate)));
  ADAMANT_ASSIGN_OR_RETURN(content.not_after, openssl::ReadTime(X509_get0_notAfter(&certificate)));
  return content;
}

// Whether `certificates`, the leaf first, lead to one of `roots`.
absl::Status VerifyChain(const std::vector<openssl::Certificate>& certificates,
                         const std::vector<openssl::Certificate>& roots,
                         WallTime now) {
  const Store store(X509_STORE_new());
  const Stack between(sk_X509_new_null());
  const Verification verification(X509_STORE_CTX_new());
  if (store == nullptr || between == nullptr || verification == nullptr) {
    return openssl::Failed("no memory");
  }
  for (const openssl::Certificate& root : roots) {
    X509_STORE_add_cert(store.get(), root.get());
  }
  for (std::size_t i = 1; i < certificates.size(); ++i) {
    sk_X509_push(between.get(), certificates[i].get());
  }
  if (X509_STORE_CTX_init(
          verification.get(), store.get(), certificates.front().get(), between.get()) != 1) {
    return openssl::Failed("cannot verify certificates");
  }
  X509_VERIFY_PARAM* const wanted = X509_STORE_CTX_get0_param(verification.get());
  X509_VERIFY_PARAM_set_time(wanted, std::chrono::system_clock::to_time_t(now));
  for (const int purpose : {X509_PURPOSE_SSL_CLIENT, X509_PURPOSE_SSL_SERVER}) {
    if (X509_check_purpose(certificates.front().get(), purpose, 0) != 1) {
      ERR_clear_error();
      return absl::UnauthenticatedError("a certificate for another purpose");
    }
  }
  const bool verified = X509_verify_cert(verification.get()) == 1;
  ERR_clear_error();
  return verified ? absl::OkStatus()
                  : absl::UnauthenticatedError(X509_verify_cert_error_string(
                        X509_STORE_CTX_get_error(verification.get())));
}

}  // namespace

absl::StatusOr<CertificateContent> ReadCertificate(std::string_view chain) {
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(chain, kMostChain));
  return ReadContent(*certificates.front());
}

absl::StatusOr<CertificateContent> VerifyCertificate(std::string_view chain,
                                                     std::string_view roots,
                                                     WallTime now) {
  ADAMANT_ASSIGN_OR_RETURN(const auto trusted, openssl::ReadCertificates(roots, kMostRoots));
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(chain, kMostChain));
  ADAMANT_RETURN_IF_ERROR(VerifyChain(certificates, trusted, now));
  return ReadContent(*certificates.front());
}

absl::Status CheckKey(std::string_view chain, const PrivateKey& key) {
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(chain, kMostChain));
  const bool is_its = X509_check_private_key(certificates.front().get(), key.key().get()) == 1;
  ERR_clear_error();
  return is_its ? absl::OkStatus()
                : absl::InvalidArgumentError("the certificate is not that of the key");
}

absl::Status CheckRoots(std::string_view roots) {
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(roots, kMostRoots));
  for (const openssl::Certificate& root : certificates) {
    if (!openssl::IsAuthority(*root)) {
      return absl::InvalidArgumentError("a root that may not sign others");
    }
  }
  return absl::OkStatus();
}

}  // namespace adamant::security
