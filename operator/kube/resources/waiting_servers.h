#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "operator/core/state/messages.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/status/job_objects.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Returns true if this is the pod of a parameter server.
bool IsServer(const PodView& view);

/// Parameter servers' pods that wait for a node: maybe for the one that their volume is on, which
/// takes no pods; or in vain, as somebody has deleted their claim.
/// Threads: one.
class WaitingServers {
 public:
  /// Returns which volume a process uses.
  using VolumeOf = std::function<std::uint64_t(controller::SlotId id)>;

  /// `writer` must outlive this.
  explicit WaitingServers(const JobWriter& writer) : writer_(writer) {}

  /// Takes what informers saw last. Asks for the claims of pods that wait, from time to time.
  /// `tolerations` returns those of the servers' pods.
  void Update(const JobObjects& seen,
              const std::function<nlohmann::json()>& tolerations,
              const VolumeOf& volume_of);

  /// Returns for how long a pod has waited for a node that takes none; nullopt: it does not.
  [[nodiscard]] std::optional<std::chrono::milliseconds> ShutOutFor(const std::string& uid) const;

  /// Returns a pod's claim, if it is gone or going; "": it is not.
  [[nodiscard]] std::string DeletedClaimOf(const std::string& uid) const;

 private:
  struct Waiting {
    std::string node{};                       // empty: it may run anywhere, as far as is known
    Clock::TimePoint ask_at{};                // for its claim
    std::optional<Clock::TimePoint> since{};  // the node takes no pods
    std::string deleted_claim{};
  };

  void AskForClaim(const std::string& claim, const JobObjects& seen, Waiting& pod) const;
  [[nodiscard]] std::string NodeOfVolume(const nlohmann::json& claim, const JobObjects& seen) const;

  const JobWriter& writer_;
  std::map<std::string, Waiting> waiting_;  // by the pod's UID
};

}  // namespace adamant::kube
