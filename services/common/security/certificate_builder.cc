#include "services/common/security/certificate_builder.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/common/security/openssl.h"

namespace adamant::security {
namespace {

constexpr std::chrono::minutes kClocksDiffer(5);
constexpr int kSerialBits = 127;  // a positive number of 16 bytes

using BigNumber = std::unique_ptr<BIGNUM, openssl::Deleter<BIGNUM, BN_free>>;
using Extension =
    std::unique_ptr<X509_EXTENSION, openssl::Deleter<X509_EXTENSION, X509_EXTENSION_free>>;

absl::Status SetSerial(X509& certificate) {
  const BigNumber serial(BN_new());
  if (serial == nullptr ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(&certificate)) == nullptr) {
    return openssl::Failed("cannot make a serial number");
  }
  return absl::OkStatus();
}

// A certificate of `key`, but for the issuer, the extensions and the signature.
absl::StatusOr<openssl::Certificate> Begin(EVP_PKEY& key,
                                           const std::string& common_name,
                                           const Validity& validity) {
  openssl::Certificate certificate(X509_new());
  if (certificate == nullptr) {
    return openssl::Failed("no memory");
  }
  ADAMANT_RETURN_IF_ERROR(SetSerial(*certificate));
  const auto at = [](WallTime time) { return std::chrono::system_clock::to_time_t(time); };
  const auto* const name = reinterpret_cast<const unsigned char*>(common_name.c_str());
  const bool set =
      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      X509_set_pubkey(certificate.get(), &key) == 1 &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), at(validity.begin - kClocksDiffer)) !=
          nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), at(validity.end)) != nullptr &&
      X509_NAME_add_entry_by_txt(
          X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1;
  return set ? absl::StatusOr<openssl::Certificate>(std::move(certificate))
             : openssl::Failed("cannot fill in a certificate");
}

struct ExtensionText {
  int kind;
  std::string value;
};

absl::Status Finish(X509& certificate,
                    X509& issuer,
                    EVP_PKEY& key,
                    const std::vector<ExtensionText>& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  for (const ExtensionText& text : extensions) {
    const Extension extension(
        X509V3_EXT_conf_nid(nullptr, &context, text.kind, text.value.c_str()));
    if (extension == nullptr || X509_add_ext(&certificate, extension.get(), -1) != 1) {
      return openssl::Failed("cannot extend a certificate");
    }
  }
  const bool is_signed = X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) == 1 &&
                         X509_sign(&certificate, &key, EVP_sha256()) > 0;
  return is_signed ? absl::OkStatus() : openssl::Failed("cannot sign a certificate");
}

// Something that tells roots apart for people.
absl::StatusOr<std::string> RandomName() {
  const BigNumber number(BN_new());
  if (number == nullptr || BN_rand(number.get(), 32, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1) {
    return openssl::Failed("no random numbers");
  }
  char* const hex = BN_bn2hex(number.get());
  std::string name = "adamant root " + std::string(hex);
  OPENSSL_free(hex);
  return name;
}

}  // namespace

absl::StatusOr<std::string> BuildRoot(const PrivateKey& key, const Validity& validity) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string name, RandomName());
  ADAMANT_ASSIGN_OR_RETURN(const openssl::Certificate root, Begin(*key.key(), name, validity));
  ADAMANT_RETURN_IF_ERROR(Finish(*root,
                                 *root,
                                 *key.key(),
                                 {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                  {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                  {NID_subject_key_identifier, "hash"}}));
  return openssl::ToPem(*root);
}

absl::StatusOr<std::string> BuildLeaf(const std::shared_ptr<evp_pkey_st>& key,
                                      const PeerIdentity& identity,
                                      const Validity& validity,
                                      const Issuer& issuer) {
  ADAMANT_ASSIGN_OR_RETURN(const auto issuers,
                           openssl::ReadCertificates(issuer.certificate, kMostChain));
  ADAMANT_ASSIGN_OR_RETURN(const openssl::Certificate leaf,
                           Begin(*key, std::string(RoleName(identity.role)), validity));
  X509& signer = *issuers.front();
  std::vector<ExtensionText> extensions = {
      {NID_basic_constraints, "critical,CA:FALSE"},
      {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, "serverAuth,clientAuth"},
      {NID_subject_alt_name, "URI:" + FormatIdentity(identity)}};
  if (X509_get0_subject_key_id(&signer) != nullptr) {
    extensions.push_back({NID_authority_key_identifier, "keyid"});
  }
  ADAMANT_RETURN_IF_ERROR(Finish(*leaf, signer, *issuer.key.key(), extensions));
  return openssl::ToPem(*leaf);
}

absl::Status CheckSigner(std::string_view chain, const PrivateKey& key) {
  ADAMANT_RETURN_IF_ERROR(CheckKey(chain, key));
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(chain, kMostChain));
  return openssl::IsAuthority(*certificates.front())
             ? absl::OkStatus()
             : absl::InvalidArgumentError("the certificate may not sign others");
}

absl::Status CheckLeads(std::string_view roots, std::string_view chain) {
  ADAMANT_RETURN_IF_ERROR(CheckRoots(roots));
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(chain, kMostChain));
  ADAMANT_ASSIGN_OR_RETURN(const auto trusted, openssl::ReadCertificates(roots, kMostRoots));
  const bool leads = std::ranges::any_of(trusted, [&](const openssl::Certificate& root) {
    return X509_verify(certificates.back().get(), X509_get0_pubkey(root.get())) == 1;
  });
  ERR_clear_error();
  return leads ? absl::OkStatus()
               : absl::InvalidArgumentError("no root leads to the certificate that signs");
}

absl::StatusOr<std::string> Rewrite(std::string_view pem, std::size_t most) {
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(pem, most));
  std::string rewritten;
  for (const openssl::Certificate& certificate : certificates) {
    rewritten += openssl::ToPem(*certificate);
  }
  return rewritten;
}

absl::StatusOr<WallTime> EndOf(std::string_view chain) {
  ADAMANT_ASSIGN_OR_RETURN(const auto certificates, openssl::ReadCertificates(chain, kMostChain));
  return openssl::ReadTime(X509_get0_notAfter(certificates.front().get()));
}

}  // namespace adamant::security
