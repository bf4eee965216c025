#pragma once

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "services/common/security/certificate.h"
#include "services/common/security/private_key.h"

// Certificates that CertificateAuthority would not make.
namespace adamant::security {

inline X509* ReadPem(const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

inline std::string WritePem(X509* certificate) {
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, size);
  BIO_free(bio);
  X509_free(certificate);
  return pem;
}

/// When those that are built begin, and how long they last.
inline const WallTime kBuiltBegin = std::chrono::system_clock::from_time_t(1'800'000'000);
inline constexpr std::chrono::hours kBuiltLife(24 * 365);

/// A certificate of `key` with these extensions, signed by `issuer_key` as `issuer`.
struct Wanted {
  const PrivateKey& key;
  const PrivateKey& issuer_key;
  std::string subject;
  std::vector<std::pair<int, std::string>> extensions;
  std::string issuer = "the root";
};

inline std::string Build(const Wanted& wanted) {
  X509* const certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  ASN1_TIME_set(X509_getm_notBefore(certificate),
                std::chrono::system_clock::to_time_t(kBuiltBegin));
  ASN1_TIME_set(X509_getm_notAfter(certificate),
                std::chrono::system_clock::to_time_t(kBuiltBegin + kBuiltLife));
  X509_set_pubkey(certificate, wanted.key.key().get());
  const auto add = [](X509_NAME* name, const std::string& text) {
    X509_NAME_add_entry_by_txt(
        name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0);
  };
  add(X509_get_subject_name(certificate), wanted.subject);
  X509_NAME* const issuer = X509_NAME_new();
  add(issuer, wanted.issuer);
  X509_set_issuer_name(certificate, issuer);
  X509_NAME_free(issuer);
  for (const auto& [kind, value] : wanted.extensions) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate, wanted.issuer_key.key().get(), EVP_sha256());
  return WritePem(certificate);
}

inline const std::vector<std::pair<int, std::string>> kAuthority = {
    {NID_basic_constraints, "critical,CA:TRUE"}, {NID_key_usage, "critical,keyCertSign"}};

/// As cert-manager would give it.
struct Intermediate {
  std::string root_name = "the root";  // another one for each that is trusted beside others
  PrivateKey root_key = PrivateKey::Make().value();
  PrivateKey key = PrivateKey::Make().value();
  std::string root = Build({root_key, root_key, root_name, kAuthority, root_name});
  std::string chain = Build({key, root_key, "between", kAuthority, root_name});

  /// Returns what comes after it under the same root.
  [[nodiscard]] Intermediate Renewed() const {
    Intermediate next = *this;
    next.key = PrivateKey::Make().value();
    next.chain = Build({next.key, root_key, "between", kAuthority, root_name});
    return next;
  }
};

}  // namespace adamant::security
