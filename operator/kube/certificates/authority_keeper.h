#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/certificates/authority_secret.h"
#include "operator/kube/certificates/certificate_observer.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/base/step_thread.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/security/certificate_authority.h"
#include "services/common/security/identity_store.h"

namespace adamant::kube {

/// Keeps the operators' authority as their Secret has it, and a certificate of this operator's own
/// that is signed by it. Every operator reads; who leads makes the authority and rolls it over,
/// each step stored by compare-and-swap before anything is done by it. With an issuer what signs is
/// that of its Secret, which is read alone, and followed when it is renewed. Threads: Start and
/// Stop by one, Step by one; the others by any.
class AuthorityKeeper {
 public:
  using Authority = std::shared_ptr<const security::CertificateAuthority>;

  struct Options {
    ObjectKey secret;             ///< its namespace is the operators'
    std::string issuer_secret{};  ///< there, of cert-manager's Certificate; empty: own roots
    std::string trust_domain;     ///< that it signs for
    std::chrono::seconds life{std::chrono::hours(24)};  ///< of certificates
    CertificateObserver* observer = nullptr;            ///< must outlive this; null: none
  };

  /// Time for which what was read is good: less than operators may differ
  /// (AuthoritySecret::kSlack).
  static constexpr std::chrono::minutes kOldest{5};

  /// `client` should not try for long. `clock` and `sleeper` must outlive this.
  AuthorityKeeper(Client client, Options options, const Clock& clock, Sleeper& sleeper);
  ~AuthorityKeeper() { Stop(); }
  AuthorityKeeper(const AuthorityKeeper&) = delete;
  AuthorityKeeper& operator=(const AuthorityKeeper&) = delete;

  /// Starts its thread, which calls `on_identity` once, when there is a certificate of its own.
  void Start(std::function<void()> on_identity);

  /// Ends it. Idempotent.
  void Stop();

  /// Instead of Start: reads, and does what is due. Returns the time until the next step.
  Clock::Duration Step();

  /// Lets it write, or not any more.
  void SetLeads(bool leads);

  /// Returns what signs now. Unavailable: there is none yet, or the Secret could not be read for
  /// kOldest.
  [[nodiscard]] absl::StatusOr<Authority> authority() const;

  /// Returns who this operator is: empty (IdentityStore::Get) until there is an authority.
  [[nodiscard]] std::shared_ptr<const security::IdentityStore> identity() const {
    return identity_;
  }

 private:
  absl::Status Keep();
  absl::Status ReadSecret(const Json& object);
  absl::Status AskIssuer();
  [[nodiscard]] absl::StatusOr<security::CertificateAuthority> ReadIssuer() const;
  [[nodiscard]] security::PeerIdentity OwnIdentity() const;
  absl::StatusOr<Json> TakeStep(AuthoritySecret::Step step, Json object);
  absl::Status KeepOwn(const security::CertificateAuthority& authority);
  absl::Status RenewOwn(const security::CertificateAuthority& authority);
  void TellEnds(const security::CertificateAuthority& authority) const;
  [[nodiscard]] bool leads() const;

  const Cancellation cancellation_;
  const Client client_;
  const Options options_;
  const Clock& clock_;
  Sleeper& sleeper_;
  const std::shared_ptr<security::IdentityStore> identity_;

  // Of the steps.
  std::function<void()> on_identity_;
  std::optional<AuthoritySecret> secret_;  // none: not read
  std::string version_;                    // of it
  absl::Status trouble_;                   // that was told last

  mutable Mutex mutex_;
  bool leads_ ABSL_GUARDED_BY(mutex_) = false;
  Authority authority_ ABSL_GUARDED_BY(mutex_);    // null: there is none
  Clock::TimePoint read_ ABSL_GUARDED_BY(mutex_);  // the Secret, last
  std::optional<StepThread> thread_;               // last: it uses the others
};

inline constexpr Resource kSecrets{"", "v1", "secrets", "Secret"};

}  // namespace adamant::kube
