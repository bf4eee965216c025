#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace adamant::kube {

/// Settings of the pods of jobs whose processes use TLS.
struct PodSecurity {
  std::string control_service;  ///< host:port where the operators are, by TLS
  std::string certificates;     ///< host:port where they issue certificates
  std::string trust_domain;     ///< that these are of

  /// Returns the roots that are trusted now, as PEM; empty: they are not known. Called on any
  /// thread.
  std::function<std::string()> roots;
};

/// Audience of the tokens by which the pods of a trust domain ask for certificates.
std::string CertificateAudience(const std::string& trust_domain);

/// Gives a pod what its process asks for its certificate with: a token that only its own user can
/// read, the roots, where to ask, and in whose name. The first container is the process's.
void AddSecurity(const PodSecurity& security, nlohmann::json& pod);

}  // namespace adamant::kube
