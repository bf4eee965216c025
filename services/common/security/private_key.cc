#include "services/common/security/private_key.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/security/openssl.h"

namespace adamant::security {
namespace {

constexpr std::size_t kMostKeyBytes = 4096;

openssl::Key Own(EVP_PKEY* key) { return {key, EVP_PKEY_free}; }

}  // namespace

PrivateKey::PrivateKey(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {}

absl::StatusOr<PrivateKey> PrivateKey::Make() {
  EVP_PKEY* const made = EVP_EC_gen("P-256");
  return made == nullptr ? absl::StatusOr<PrivateKey>(openssl::Failed("cannot make a key"))
                         : PrivateKey(Own(made));
}

absl::StatusOr<PrivateKey> PrivateKey::FromPem(std::string_view pem) {
  const auto no_pass_phrase = [](char*, int, int, void*) { return 0; };
  const openssl::Bio reader = openssl::Reader(pem.substr(0, kMostKeyBytes));
  openssl::Key key = Own(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_pass_phrase, nullptr));
  ERR_clear_error();
  if (key == nullptr || !openssl::IsP256(*key)) {
    return absl::InvalidArgumentError("not a private key of the curve P-256, as PEM");
  }
  return PrivateKey(std::move(key));
}

std::string PrivateKey::ToPem() const {
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return openssl::Written(bio);
}

absl::StatusOr<std::string> PrivateKey::MakeRequest() const {
  const openssl::Request request(X509_REQ_new());
  if (request == nullptr || X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), key_.get()) != 1 ||
      X509_REQ_sign(request.get(), key_.get(), EVP_sha256()) <= 0) {
    return openssl::Failed("cannot make a certificate request");
  }
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  if (i2d_X509_REQ_bio(bio.get(), request.get()) != 1) {
    return openssl::Failed("cannot write a certificate request");
  }
  return openssl::Written(bio);
}

absl::StatusOr<std::shared_ptr<evp_pkey_st>> ReadRequest(std::string_view request) {
  if (request.size() > kMostRequestBytes) {
    return absl::InvalidArgumentError("a certificate request of more than 4 KiB");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(request.data());
  const auto* const end = bytes + request.size();
  const openssl::Request read(d2i_X509_REQ(nullptr, &bytes, static_cast<long>(request.size())));
  ERR_clear_error();
  if (read == nullptr || bytes != end) {
    return absl::InvalidArgumentError("not a certificate request (PKCS#10, DER)");
  }
  openssl::Key key = Own(X509_REQ_get_pubkey(read.get()));
  const bool is_ours = key != nullptr && openssl::IsP256(*key);
  const bool is_signed = is_ours && X509_REQ_verify(read.get(), key.get()) == 1;
  ERR_clear_error();
  if (!is_ours) {
    return absl::InvalidArgumentError("a certificate request for a key that is not of P-256");
  }
  if (!is_signed) {
    return absl::InvalidArgumentError("a certificate request that is not signed by its key");
  }
  return key;
}

}  // namespace adamant::security
