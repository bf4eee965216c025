#include "operator/kube/certificates/cluster_keys.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/json.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::minutes kOldest{10};
constexpr std::chrono::seconds kPause{10};
constexpr char kConfigurationPath[] = "/.well-known/openid-configuration";
constexpr char kKeysPath[] = "/openid/v1/jwks";

}  // namespace

ClusterKeys::ClusterKeys(Client client, const Clock& clock, std::string audience)
    : client_(std::move(client)), clock_(clock), audience_(std::move(audience)) {}

absl::StatusOr<security::PodToken> ClusterKeys::Verify(std::string_view token) {
  auto known = Get(kOldest);
  if (known == nullptr) {
    return absl::UnavailableError("the cluster's keys could not be read yet");
  }
  auto verified = known->verifier.Verify(token, known->keys, clock_.WallNow());
  if (absl::IsNotFound(verified.status())) {  // the cluster may have changed them
    known = Get(kPause);
    verified = known->verifier.Verify(token, known->keys, clock_.WallNow());
  }
  return absl::IsNotFound(verified.status())
             ? absl::UnauthenticatedError(verified.status().message())
             : verified;
}

// Null: they were never read.
std::shared_ptr<const ClusterKeys::Known> ClusterKeys::Get(Clock::Duration oldest) {
  const MutexLock lock(mutex_);
  const Clock::TimePoint now = clock_.Now();
  const bool is_old = known_ == nullptr || now - read_ >= oldest;
  if (!is_old || (asked_ && now - *asked_ < kPause)) {
    return known_;
  }
  absl::StatusOr<Known> read = Read();
  asked_ = clock_.Now();
  if (!read.ok()) {
    LogWarning("the cluster's keys cannot be read", {{"error", read.status().ToString()}});
    return known_;
  }
  known_ = std::make_shared<const Known>(*std::move(read));
  read_ = *asked_;
  return known_;
}

absl::StatusOr<ClusterKeys::Known> ClusterKeys::Read() const {
  ADAMANT_ASSIGN_OR_RETURN(const std::string text, client_.GetRaw(kConfigurationPath));
  ADAMANT_ASSIGN_OR_RETURN(const Json configuration, ParseJson(text));
  std::string issuer = StringAt(configuration, {"issuer"});
  if (issuer.empty()) {
    return absl::InvalidArgumentError(std::string(kConfigurationPath) + " names no issuer");
  }
  ADAMANT_ASSIGN_OR_RETURN(const std::string set, client_.GetRaw(kKeysPath));
  ADAMANT_ASSIGN_OR_RETURN(security::JsonWebKeys keys, security::JsonWebKeys::Parse(set));
  return Known{
      .keys = std::move(keys),
      .verifier = security::TokenVerifier({.issuer = std::move(issuer), .audience = audience_})};
}

}  // namespace adamant::kube
