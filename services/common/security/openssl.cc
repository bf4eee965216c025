#include "services/common/security/openssl.h"

#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstring>
#include <ctime>

namespace adamant::security::openssl {
namespace {

constexpr std::size_t kMostPemBytes = 64 << 10;

// No key is ever asked for a pass phrase at a terminal.
int NoPassPhrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*data*/) { return 0; }

}  // namespace

std::string Reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

absl::Status Failed(std::string_view what) {
  return absl::InternalError("OpenSSL: " + std::string(what) + ": " + Reason());
}

Bio Reader(std::string_view bytes) {
  return Bio(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

std::string Written(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(std::string_view pem, std::size_t most) {
  if (pem.size() > kMostPemBytes) {
    return absl::InvalidArgumentError("certificates of more than 64 KiB");
  }
  const Bio reader = Reader(pem);
  std::vector<Certificate> certificates;
  while (X509* const read = PEM_read_bio_X509(reader.get(), nullptr, NoPassPhrase, nullptr)) {
    certificates.emplace_back(read);
    if (certificates.size() > most) {
      return absl::InvalidArgumentError("more than " + std::to_string(most) + " certificates");
    }
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = Reason();
  if (certificates.empty() || !at_end) {
    return absl::InvalidArgumentError("cannot be read as PEM certificates: " + reason);
  }
  return certificates;
}

std::string ToPem(X509& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), &certificate);
  return Written(bio);
}

absl::StatusOr<std::chrono::system_clock::time_point> ReadTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("a certificate without times");
  }
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

bool IsP256(const EVP_PKEY& key) {
  std::array<char, 32> group{};
  std::size_t size = 0;
  return EVP_PKEY_is_a(&key, "EC") == 1 &&
         EVP_PKEY_get_group_name(&key, group.data(), group.size(), &size) == 1 &&
         std::strcmp(group.data(), SN_X9_62_prime256v1) == 0;
}

bool IsAuthority(X509& certificate) {
  const bool is_one = X509_check_ca(&certificate) == 1 &&
                      (X509_get_key_usage(&certificate) & KU_KEY_CERT_SIGN) != 0;
  ERR_clear_error();
  return is_one;
}

}  // namespace adamant::security::openssl
