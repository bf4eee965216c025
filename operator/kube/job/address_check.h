#pragma once

#include <string>

#include "operator/control/control_server.h"
#include "operator/core/state/actions.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube/pods/member_addresses.h"
#include "operator/kube/status/job_objects.h"

namespace adamant::kube {

/// Turns away who joins a job as a process whose pod has another address.
/// Threads: one.
class AddressCheck {
 public:
  /// The arguments must outlive this.
  AddressCheck(control::ControlServer& control, const JobIdentity& job)
      : control_(control), job_(job) {}

  /// These pods are seen, which may have addresses now.
  void Update(const PodViews& pods);

  /// Returns true if it is a stranger's Join, and refuses it: the controller must not hear of it.
  bool TurnsAway(const controller::Event& event);

 private:
  void Refuse(controller::ConnectionId connection, const std::string& why);

  control::ControlServer& control_;
  const JobIdentity& job_;
  MemberAddresses addresses_;
};

}  // namespace adamant::kube
