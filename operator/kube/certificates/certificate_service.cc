#include "operator/kube/certificates/certificate_service.h"

#include <algorithm>
#include <utility>

#include "proto/adamant/v1/certificates.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/security/private_key.h"
#include "services/common/security/token_verifier.h"

namespace adamant::kube {
namespace {

using Refusal = CertificateObserver::Refusal;

absl::Status CheckSizes(const v1::CertificateRequest& request) {
  if (request.request().empty() || request.request().size() > security::kMostRequestBytes) {
    return absl::InvalidArgumentError("request: has 1 to " +
                                      std::to_string(security::kMostRequestBytes) + " bytes");
  }
  if (request.token().size() > security::kMostTokenBytes) {
    return absl::InvalidArgumentError("token: has at most " +
                                      std::to_string(security::kMostTokenBytes) + " bytes");
  }
  return absl::OkStatus();
}

// Two thirds of what is left.
absl::StatusOr<std::uint32_t> RenewAfter(const std::string& chain, security::WallTime now) {
  ADAMANT_ASSIGN_OR_RETURN(const security::CertificateContent content,
                           security::ReadCertificate(chain));
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(content.not_after - now);
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, left.count() * 2 / 3));
}

}  // namespace

CertificateService::CertificateService(Parts parts, std::chrono::seconds life)
    : parts_(std::move(parts)), life_(life), log_(parts_.clock) {}

absl::StatusOr<v1::Certificate> CertificateService::Issue(const v1::CertificateRequest& request) {
  ADAMANT_RETURN_IF_ERROR(CheckSizes(request));
  ADAMANT_ASSIGN_OR_RETURN(const security::PodToken token, Verify(request.token()));
  ADAMANT_ASSIGN_OR_RETURN(const security::PeerIdentity identity, Find(token));
  ADAMANT_ASSIGN_OR_RETURN(const Authority authority, parts_.authority());
  const security::WallTime now = parts_.clock.WallNow();
  absl::StatusOr<std::string> chain = authority->Sign(request.request(), identity, now, life_);
  if (absl::IsFailedPrecondition(chain.status())) {  // another root may come
    return absl::UnavailableError(chain.status().message());
  }
  ADAMANT_RETURN_IF_ERROR(chain.status());
  v1::Certificate certificate;
  ADAMANT_ASSIGN_OR_RETURN(const std::uint32_t renew_after, RenewAfter(*chain, now));
  certificate.set_renew_after_seconds(renew_after);
  certificate.set_chain(*std::move(chain));
  certificate.set_roots(authority->roots());
  if (parts_.observer != nullptr) {
    parts_.observer->OnIssued(identity.role);
  }
  LogInfo("issued a certificate", {{"to", security::FormatIdentity(identity)}});
  return certificate;
}

absl::StatusOr<std::string> CertificateService::IssueSerialized(const std::string& request) {
  v1::CertificateRequest parsed;
  if (!parsed.ParseFromString(request)) {
    return absl::InvalidArgumentError("not a CertificateRequest");
  }
  ADAMANT_ASSIGN_OR_RETURN(const v1::Certificate certificate, Issue(parsed));
  return certificate.SerializeAsString();
}

absl::StatusOr<security::PodToken> CertificateService::Verify(const std::string& token) {
  auto verified = parts_.keys.Verify(token);
  return absl::IsUnauthenticated(verified.status())
             ? Refuse(Refusal::kBadToken, "", verified.status())
             : std::move(verified);
}

absl::StatusOr<security::PeerIdentity> CertificateService::Find(const security::PodToken& token) {
  auto identity = parts_.pods.Find(token);
  const std::string pod = token.name_space + "/" + token.pod_name;
  if (absl::IsPermissionDenied(identity.status())) {
    return Refuse(Refusal::kReplaced, pod, identity.status());
  }
  if (absl::IsNotFound(identity.status())) {
    return Refuse(
        Refusal::kWrongJob, pod, absl::PermissionDeniedError(identity.status().message()));
  }
  return identity;
}

absl::Status CertificateService::Refuse(Refusal reason,
                                        const std::string& pod,
                                        const absl::Status& why) {
  if (parts_.observer != nullptr) {
    parts_.observer->OnRefused(reason);
  }
  log_.Tell(pod, std::string(why.message()));
  return why;
}

}  // namespace adamant::kube
