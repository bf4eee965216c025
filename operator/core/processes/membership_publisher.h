#pragma once

#include <cstdint>
#include <set>

#include "operator/core/processes/process_table.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Tells the members the view: who runs, who holds which bucket, who owns which part.
/// Threads: one thread at a time.
class MembershipPublisher {
 public:
  /// The arguments must outlive this.
  MembershipPublisher(const JobState& state, ProcessTable& processes)
      : state_(state), processes_(processes) {}

  /// Takes note that what the view says has changed since it was published.
  void SetChanged() { changed_ = true; }
  [[nodiscard]] bool changed() const { return changed_; }

  /// The parameter server of this slot does not know the view.
  void OnOutdated(std::uint32_t slot) { outdated_.insert(slot); }

  /// Sends the whole view to everybody, under a new version.
  void Publish();

  /// Publishes the view if it has changed; else repeats it to those who do not know it.
  void PublishChanges();

 private:
  [[nodiscard]] Membership View() const;

  const JobState& state_;
  ProcessTable& processes_;
  bool changed_ = false;
  std::set<std::uint32_t> outdated_;  // slots whose proposals were for earlier configurations
  std::uint32_t versions_ = 0;        // published under this term
};

}  // namespace adamant::controller
