#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "operator/core/actions.h"
#include "operator/core/reconcile.h"

namespace adamant::kube {

/// The pods that were made or seen. A view that lacks one is older than the pod, or the pod is
/// gone. Threads: one.
class PodMemory {
 public:
  /// The API has made it, or says that it is there.
  void OnMade(const controller::StartProcess& process, const std::string& uid);

  /// A view shows it.
  void OnSeen(const controller::StartProcess& process, const std::string& uid);

  /// The API says that it is not there any more, whatever a view shows.
  void OnGone(const std::string& uid);

  /// Pods of earlier generations than those that are wanted do not count any more. (A later one may
  /// be there, of another controller, and does not make this one's wishes void.)
  void ForgetBefore(std::span<const controller::StartProcess> wanted);

  /// Adds to what a view of the job's pods shows those that it lacks: as pending, or as gone.
  void Complete(const std::string& job, std::vector<controller::ObservedPod>& observed) const;

 private:
  struct Pod {
    std::string uid{};
    bool seen = false;
  };

  std::map<controller::StartProcess, Pod> pods_;
};

}  // namespace adamant::kube
