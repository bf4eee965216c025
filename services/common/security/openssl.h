#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// What the sources of this folder share of OpenSSL: owners of its objects, PEM, errors.
namespace adamant::security::openssl {

template <class T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* object) const { Free(object); }
};
struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

using Bio = std::unique_ptr<BIO, BioDeleter>;
using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using Request = std::unique_ptr<X509_REQ, Deleter<X509_REQ, X509_REQ_free>>;

/// Returns OpenSSL's reason for the oldest error of this thread, and forgets all of them.
std::string Reason();

/// Internal: OpenSSL could not do `what`.
absl::Status Failed(std::string_view what);

/// Returns a reader of `bytes`, which must outlive it.
Bio Reader(std::string_view bytes);

/// Returns what was written to a BIO of memory.
std::string Written(const Bio& bio);

/// The certificates in `pem`: one at least, `most` at most, and nothing but comments besides.
/// Errors: InvalidArgument.
absl::StatusOr<std::vector<Certificate>> ReadCertificates(std::string_view pem, std::size_t most);

/// A certificate as PEM.
std::string ToPem(X509& certificate);

/// Errors: InvalidArgument for what is no time.
absl::StatusOr<std::chrono::system_clock::time_point> ReadTime(const ASN1_TIME* time);

/// Returns whether `key` is on the curve P-256, the only one that is used here.
bool IsP256(const EVP_PKEY& key);

/// Returns whether a certificate may sign others.
bool IsAuthority(X509& certificate);

}  // namespace adamant::security::openssl
