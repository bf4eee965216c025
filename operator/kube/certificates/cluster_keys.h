#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "operator/kube_client/api/client.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/security/json_web_keys.h"
#include "services/common/security/token_verifier.h"

namespace adamant::kube {

/// Checks the tokens of a cluster's pods by the keys that its API publishes. They are kept, and
/// read again after ten minutes, and for a token of a key that is not known; whatever comes of
/// that, not again within ten seconds. So an API that is away for a while is not noticed. Threads:
/// any; calls may wait for the API.
class ClusterKeys {
 public:
  /// `client` should not try for long. `clock` must outlive this.
  ClusterKeys(Client client, const Clock& clock, std::string audience);

  /// Reads a token that is valid now. Errors: Unauthenticated with a reason; Unavailable while the
  /// keys could never be read.
  absl::StatusOr<security::PodToken> Verify(std::string_view token);

 private:
  // Of one reading, together.
  struct Known {
    security::JsonWebKeys keys;
    security::TokenVerifier verifier;
  };

  std::shared_ptr<const Known> Get(Clock::Duration oldest);
  absl::StatusOr<Known> Read() const;

  const Client client_;
  const Clock& clock_;
  const std::string audience_;

  Mutex mutex_;  // held while the API is asked: others wait for the same answer
  std::shared_ptr<const Known> known_ ABSL_GUARDED_BY(mutex_);  // null: never read
  std::optional<Clock::TimePoint> asked_ ABSL_GUARDED_BY(mutex_);
  Clock::TimePoint read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
