#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/security/certificate.h"
#include "services/common/security/identity_store.h"
#include "services/common/security/peer_identity.h"
#include "services/common/security/private_key.h"
#include "services/common/service/service.h"

namespace grpc {
class ClientContext;
}  // namespace grpc

namespace adamant::v1 {
class Certificate;
}  // namespace adamant::v1

namespace adamant::service {

/// Returns the time from now to the renewal of a certificate that lasts for `left`: what the
/// operator says, where that makes sense; at most two thirds of `left`, at least a second.
std::chrono::seconds RenewAfter(std::uint32_t said, std::chrono::seconds left);

/// Gets a process its certificate from an operator, and renews it with a new key each time. Keys
/// are in memory alone.
/// Threads: Stop from any, the others from one. Starts one, which ends with it.
class IdentityClient {
 public:
  struct Options {
    TlsFlags flags;

    /// Of this process. Another one's certificate is not taken. Without a job's UID: that of the
    /// certificate.
    security::PeerIdentity identity;

    BackoffOptions pauses = {};  ///< between tries for the first certificate
    BackoffOptions renewal_pauses{.initial = std::chrono::seconds(1),
                                  .max = std::chrono::seconds(60)};
  };

  explicit IdentityClient(Options options);
  ~IdentityClient();
  IdentityClient(const IdentityClient&) = delete;
  IdentityClient& operator=(const IdentityClient&) = delete;

  /// Waits for the first certificate, and goes on to renew it. When that is refused, as another
  /// process has this one's place, `on_replaced` is called once, on the thread of this. Called
  /// once.
  /// Errors: PermissionDenied when an operator refuses the first one already; Cancelled after Stop.
  absl::Status Start(std::function<void(const absl::Status&)> on_replaced);

  /// Ends what Start waits for, and renewals.
  void Stop();

  /// Returns what the process proves itself with: empty until Start has returned OK.
  [[nodiscard]] const std::shared_ptr<security::IdentityStore>& store() const { return store_; }

 private:
  // Tries until there is one; of failures it warns once, from `warn_at` on.
  absl::Status Obtain(const BackoffOptions& pauses, security::WallTime warn_at);
  absl::Status Ask();
  absl::Status Call(const std::string& address,
                    const security::PrivateKey& key,
                    v1::Certificate& answer);
  absl::Status Accept(const v1::Certificate& answer, const security::PrivateKey& key);
  [[nodiscard]] absl::Status CheckIsOwn(const std::string& chain) const;
  void Renew();
  bool BeginCall(grpc::ClientContext& context);
  void EndCall();
  bool SleepUntil(Clock::TimePoint time);

  // Constant after construction, or after Start.
  const Options options_;
  const std::shared_ptr<security::IdentityStore> store_;
  const SystemClock clock_;
  std::function<void(const absl::Status&)> on_replaced_;

  // Of whoever asks: first Start, then the thread.
  std::size_t attempts_ = 0;
  Clock::TimePoint renew_at_;

  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the one in progress

  std::jthread thread_;
};

}  // namespace adamant::service
