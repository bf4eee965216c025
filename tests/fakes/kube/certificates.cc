#include "tests/fakes/kube/certificates.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>

#include "services/common/base/check.h"

namespace adamant::fakes {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Key MakeKey() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  ADAMANT_CHECK(key != nullptr, "OpenSSL makes keys");
  return {key, &EVP_PKEY_free};
}

template <class Write>
std::string Pem(const Write& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), &BIO_free);
  ADAMANT_CHECK(write(memory.get()) == 1, "OpenSSL writes PEM");
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string CertificatePem(X509* certificate) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string KeyPem(EVP_PKEY* key) {
  return Pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void Extend(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  ADAMANT_CHECK(extension != nullptr, "OpenSSL knows the extension");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

bool IsAddress(const std::string& name) {
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(AF_INET, name.c_str(), address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address) == 1;
}

/// A certificate for `key`, signed by nobody yet.
Certificate Draft(EVP_PKEY* key, const CertificateRequest& request) {
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);  // counts from 0: version 3
  std::uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial | 1U);
  const std::chrono::seconds end = request.valid_for;
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -48L * 3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), static_cast<long>(end.count()));
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()),
                             "CN",
                             MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(request.common_name.c_str()),
                             -1,
                             -1,
                             0);
  return certificate;
}

}  // namespace

struct CertificateAuthority::Impl {
  Key key = MakeKey();
  Certificate certificate{nullptr, &X509_free};
};

CertificateAuthority::CertificateAuthority(const std::string& common_name)
    : impl_(std::make_unique<Impl>()) {
  impl_->certificate = Draft(impl_->key.get(), {.common_name = common_name});
  X509* certificate = impl_->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  Extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  X509_sign(certificate, impl_->key.get(), EVP_sha256());
  certificate_ = CertificatePem(certificate);
}

CertificateAuthority::~CertificateAuthority() = default;

KeyPair CertificateAuthority::Issue(const CertificateRequest& request) const {
  const Key key = MakeKey();
  const Certificate certificate = Draft(key.get(), request);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(impl_->certificate.get()));
  Extend(certificate.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  std::string names;
  for (const std::string& name : request.names) {
    names += (names.empty() ? "" : ",") + std::string(IsAddress(name) ? "IP:" : "DNS:") + name;
  }
  if (!names.empty()) {
    Extend(certificate.get(), NID_subject_alt_name, names);
  }
  X509_sign(certificate.get(), impl_->key.get(), EVP_sha256());
  return {.certificate = CertificatePem(certificate.get()), .key = KeyPem(key.get())};
}

}  // namespace adamant::fakes
