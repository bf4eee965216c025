#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "operator/core/state/messages.h"
#include "operator/kube/pods/node_view.h"
#include "operator/kube/status/job_objects.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// The nodes that a job's pods are on, and were on.
/// Threads: one.
class PodNodes {
 public:
  /// `clock` must outlive this.
  explicit PodNodes(const Clock& clock) : clock_(clock) {}

  /// Takes what informers saw last.
  void Update(const JobObjects& seen);

  /// Returns for how long a node has been away; nullopt: it is there.
  [[nodiscard]] std::optional<std::chrono::milliseconds> AwayFor(const std::string& node) const;

  /// Returns true if a node is marked out of service: nothing runs on it any more.
  [[nodiscard]] bool IsOutOfService(const std::string& node) const;

  /// Returns a node's zone; "": not known.
  [[nodiscard]] std::string ZoneOf(const std::string& node) const;

  /// Returns the zones of all that have one, by node.
  [[nodiscard]] std::map<std::string, std::string> Zones() const;

  /// Returns " (on node2)": where the last process of a slot ran that has had a node; "": not
  /// known.
  [[nodiscard]] std::string WhereItRan(controller::SlotId id) const;

  /// Forgets where processes ran before the last but one of this slot.
  void ForgetBefore(const controller::StartProcess& process);

 private:
  const Clock& clock_;
  NodeViews nodes_;
  NodeAbsences absences_;
  std::map<controller::StartProcess, std::string> ran_on_;  // also of pods that are gone
};

}  // namespace adamant::kube
