#include "operator/certificate_metrics.h"

#include <chrono>
#include <string_view>

namespace adamant {
namespace {

using Refusal = kube::CertificateObserver::Refusal;
using Kind = kube::CertificateObserver::Kind;

constexpr Refusal kRefusals[] = {Refusal::kNoCertificate,
                                 Refusal::kBadToken,
                                 Refusal::kReplaced,
                                 Refusal::kWrongJob,
                                 Refusal::kWrongRole,
                                 Refusal::kWrongSlot};

std::string_view NameOf(Refusal reason) {
  switch (reason) {
    case Refusal::kNoCertificate:
      return "no_certificate";
    case Refusal::kBadToken:
      return "bad_token";
    case Refusal::kReplaced:
      return "replaced";
    case Refusal::kWrongJob:
      return "wrong_job";
    case Refusal::kWrongRole:
      return "wrong_role";
    case Refusal::kWrongSlot:
      return "wrong_slot";
  }
  return "";
}

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kLeaf:
      return "leaf";
    case Kind::kRoot:
      return "root";
    case Kind::kIssuer:
      return "issuer";
  }
  return "";
}

}  // namespace

CertificateMetrics::CertificateMetrics(metrics::Registry& registry, bool is_enabled)
    : registry_(registry) {
  registry.AddGauge("adamant_operator_tls_enabled", "1 where jobs that begin use TLS, else 0.")
      .Set(is_enabled ? 1 : 0);
  if (!is_enabled) {
    return;
  }
  for (const security::Role role : security::kRoles) {
    if (role != security::Role::kOperator) {
      issued_.emplace(role,
                      registry.AddCounter("adamant_certificates_issued_total",
                                          "Certificates that were issued, by the process's role.",
                                          {{"role", security::RoleName(role)}}));
    }
  }
  for (const Refusal reason : kRefusals) {
    refused_.emplace(reason,
                     registry.AddCounter("adamant_authorisation_refused_total",
                                         "Calls refused for who made them, by what was wrong.",
                                         {{"reason", NameOf(reason)}}));
  }
}

void CertificateMetrics::OnIssued(security::Role role) { issued_.at(role).Increment(); }

void CertificateMetrics::OnRefused(Refusal reason) { refused_.at(reason).Increment(); }

void CertificateMetrics::OnEnd(Kind kind, security::WallTime end) {
  const auto seconds = std::chrono::duration<double>(end.time_since_epoch());
  const MutexLock lock(mutex_);
  if (kind != Kind::kLeaf) {  // what signed before is not of use any more
    Forget(kind == Kind::kRoot ? Kind::kIssuer : Kind::kRoot);
  }
  auto gauge = ends_.find(kind);
  if (gauge == ends_.end()) {
    gauge = ends_
                .emplace(kind,
                         registry_.AddGauge("adamant_operator_certificate_end_timestamp_seconds",
                                            "End of the operators' own certificates, Unix time: "
                                            "leaf, and root or, where it is given, issuer.",
                                            {{"kind", NameOf(kind)}}))
                .first;
  }
  gauge->second.Set(seconds.count());
}

void CertificateMetrics::Forget(Kind kind) {
  if (const auto gauge = ends_.find(kind); gauge != ends_.end()) {
    registry_.Remove(gauge->second);
    ends_.erase(gauge);
  }
}

}  // namespace adamant
