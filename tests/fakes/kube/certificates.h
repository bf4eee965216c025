#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace adamant::fakes {

/// A certificate and its private key, as PEM text.
struct KeyPair {
  std::string certificate;
  std::string key;
};

/// What a certificate is issued for.
struct CertificateRequest {
  std::string common_name = "test";
  std::vector<std::string> names = {};  ///< DNS names and IP addresses that a server answers to
  std::chrono::hours valid_for{24};     ///< negative: it has expired
};

/// A certificate authority of its own, made when constructed (keys on P-256: a millisecond).
/// Threads: any.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& common_name = "test-ca");
  ~CertificateAuthority();

  /// Its own certificate, as PEM text: what clients are told to trust.
  [[nodiscard]] const std::string& certificate() const { return certificate_; }

  [[nodiscard]] KeyPair Issue(const CertificateRequest& request) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string certificate_;
};

}  // namespace adamant::fakes
