#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/auth/exec_credentials.h"
#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// Certificates and key that TLS is spoken with: PEM text; empty: none.
struct TlsMaterial {
  std::string authorities;  ///< whom to trust; none: those of the system
  std::string certificate;  ///< ours, with what else leads to its authority
  std::string key;

  bool operator==(const TlsMaterial&) const = default;
};

/// Token and TLS material that a request proves itself with.
struct Credential {
  std::string token;  ///< for "Authorization: Bearer"; empty: none
  TlsMaterial tls;

  bool operator==(const Credential&) const = default;
};

/// The credentials that a Config describes, kept fresh: files are read again every five seconds (a
/// token changes about once an hour, a certificate more rarely; both while we run), plugins run
/// again when what they gave has expired. A file that cannot be read any more is warned of, and
/// what it held before stays in use. Threads: any; a plugin runs once, whoever waits for it.
class Credentials {
 public:
  /// `clock` must outlive this.
  Credentials(const Config& config, const Clock& clock);

  /// Returns the credential to send a request with.
  /// Errors: as ReadFile and ExecCredentials; InvalidArgument for a token that cannot be sent.
  absl::StatusOr<std::shared_ptr<const Credential>> Get(const Cancellation& cancellation);

  /// After a 401: as Get, but reads the files now and runs the plugin, unless it has given
  /// something else than `refused` already. May return what equals `refused`: then there is nothing
  /// else.
  absl::StatusOr<std::shared_ptr<const Credential>> GetAfter(const Credential& refused,
                                                             const Cancellation& cancellation);

 private:
  absl::StatusOr<Credential> ReadFiles(bool now);
  [[nodiscard]] absl::StatusOr<Credential> ReadAll() const;
  absl::StatusOr<std::shared_ptr<const Credential>> Compose(const Credential* refused,
                                                            const Cancellation& cancellation);

  const Config config_;
  const Clock& clock_;
  const std::unique_ptr<ExecCredentials> exec_;  // null: no plugin

  Mutex mutex_;
  std::shared_ptr<const Credential> current_ ABSL_GUARDED_BY(mutex_);  // last handed out
  std::optional<Credential> files_ ABSL_GUARDED_BY(mutex_);
  Clock::TimePoint read_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
