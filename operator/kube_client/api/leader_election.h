#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/step_thread.h"
#include "services/common/base/clock.h"
#include "services/common/base/rng.h"

namespace adamant::kube {

struct LeaderElectionOptions {
  ObjectKey lease;
  std::string identity;                       ///< of this candidate; unique
  std::chrono::milliseconds duration{5'000};  ///< a lease not renewed for this long may be taken
  std::chrono::milliseconds renew_interval{1'000};
  std::chrono::milliseconds renew_deadline{3'500};  ///< < duration
  std::chrono::milliseconds poll_interval{500};     ///< of who does not lead
  std::uint64_t seed = 1;
};

/// Called on the election's thread, without a lock.
struct LeaderCallbacks {
  /// We hold the lease. `transitions` rises each time that it changes hands.
  std::function<void(std::int64_t transitions)> started;

  /// We led, and could not renew for `renew_deadline`. Nobody else is known to lead; `started` or
  /// `stopped` follows.
  std::function<void()> lost;

  /// We led, and another one does now, or we have released the lease.
  std::function<void()> stopped;

  /// Somebody, perhaps we, holds the lease; not called again for the same one.
  std::function<void(const std::string& identity)> new_leader;
};

/// One of several candidates leads, by a Lease object that it renews. A lease is over when it has
/// not changed for its duration by our own clock, since we saw it change: the times that others
/// write are for people; nor does the time count in which the API could not be reached. Leases do
/// not fence: at times two can believe that they lead.
///
/// Threads: Start, Stop and Step by one thread.
/// Source: Kubernetes' client-go, tools/leaderelection.
class LeaderElection {
 public:
  /// `clock` and `sleeper` must outlive this.
  LeaderElection(const Client& client,
                 LeaderElectionOptions options,
                 LeaderCallbacks callbacks,
                 const Clock& clock,
                 Sleeper& sleeper);
  ~LeaderElection() { cancellation_.Cancel(); }  ///< keeps the lease, as if we had died
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  /// Starts the thread that takes part.
  void Start();

  /// Ends it, and gives the lease up if we hold it, so that another one need not wait. Idempotent.
  void Stop();

  /// Instead of Start, for those who have no threads: one look, or one try to take or renew.
  /// Returns the time to wait before the next step.
  Clock::Duration Step();

 private:
  enum class Role { kStandby, kLeader, kLost };

  // A Lease as it was last seen.
  struct Record {
    std::string resource_version;
    std::string spec;  // whatever others change in it shows that they are alive
    std::string holder;
    std::chrono::milliseconds duration{0};
    std::int64_t transitions = 0;
  };

  absl::Status Attempt();
  absl::Status Read();
  absl::Status Take();
  absl::Status Write(const Client& client, const std::string& holder);
  void Observe(const Json& lease);
  void TellLeader();
  void StandDown();
  void Release();
  [[nodiscard]] bool ours() const;
  [[nodiscard]] Clock::TimePoint Expiry() const;
  [[nodiscard]] Clock::Duration UntilNextStep(bool failed);

  const Client client_;
  const LeaderElectionOptions options_;
  const LeaderCallbacks callbacks_;
  const Clock& clock_;
  Sleeper& sleeper_;
  const Cancellation cancellation_;

  Rng rng_;
  Role role_ = Role::kStandby;
  std::optional<Record> record_;  // none: there is no Lease, or it is not known
  Clock::TimePoint observed_{};   // when it was seen to have changed
  Clock::TimePoint renewed_{};    // when our last successful write was sent
  std::string leader_;            // as last told
  bool failing_ = false;          // the last step did
  std::optional<StepThread> thread_;
};

}  // namespace adamant::kube
