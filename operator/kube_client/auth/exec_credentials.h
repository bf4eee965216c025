#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// Answer of a credential plugin.
struct ExecCredential {
  std::string token;
  std::string certificate;                                       ///< PEM
  std::string key;                                               ///< PEM
  std::optional<std::chrono::system_clock::time_point> expires;  ///< none: good until refused

  bool operator==(const ExecCredential&) const = default;
};

/// Reads what a plugin printed: an ExecCredential of `api_version`.
/// Errors: FailedPrecondition, naming the field.
absl::StatusOr<ExecCredential> ParseExecCredential(std::string_view text,
                                                   std::string_view api_version);

/// Returns what is told to the plugin in KUBERNETES_EXEC_INFO, as JSON. `authorities`: PEM.
std::string ExecInfo(const Config& config, const std::string& authorities);

/// The credentials of a plugin (client.authentication.k8s.io/v1, v1beta1), kept until they expire.
/// Threads: any; the plugin runs once, and whoever needs its answer waits for it.
class ExecCredentials {
 public:
  /// `config` has a plugin. `clock` must outlive this.
  ExecCredentials(const Config& config, const Clock& clock);

  /// Errors: FailedPrecondition when the plugin cannot be run, fails or prints what cannot be used
  /// (with what it wrote to standard error); DeadlineExceeded after a minute; Cancelled.
  /// A failure is repeated for a second instead of running the plugin again.
  absl::StatusOr<std::shared_ptr<const ExecCredential>> Get(const Cancellation& cancellation);

  /// The server does not accept `refused`: the next Get runs the plugin, unless there is another
  /// answer already.
  void Drop(std::string_view refused_token, std::string_view refused_certificate);

 private:
  using Result = absl::StatusOr<std::shared_ptr<const ExecCredential>>;

  [[nodiscard]] Result Run(const Cancellation& cancellation) const;
  [[nodiscard]] bool Usable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Config config_;
  const Clock& clock_;

  Mutex mutex_;
  CondVar changed_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  Result last_ ABSL_GUARDED_BY(mutex_) = std::shared_ptr<const ExecCredential>();
  Clock::TimePoint ended_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
