#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/core/state/actions.h"

namespace adamant::kube {

/// Adds what a controller has decided to what waits. Of several states, and of several Memberships
/// for a member, only the last counts: it takes the place of the one before, as each is as large as
/// the job has buckets and there is one for each event.
void AddAction(controller::Action action, std::deque<controller::Action>& waiting);

/// Decisions that a controller has made while its state could not be stored. What leads an epoch
/// goes on without: members answer by epoch and snapshot, so repeating it later is harmless.
/// Everything else, what makes or unmakes members and records and what begins the first epoch,
/// waits until the state is stored.
/// Threads: one.
class DeferredActions {
 public:
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  /// The entries that are to be stored: of several values for a key the last.
  [[nodiscard]] std::vector<controller::Persist::Entry> entries() const;

  /// A swap has failed, or another is to be stored with it.
  void Add(const controller::Persist& persist);

  /// Returns true if the action may be carried out now although something is held; else keeps it.
  bool PassesOrKeeps(controller::Action& action);

  /// The entries are stored: what was kept, in order. Empties this.
  std::deque<controller::Action> Release();

 private:
  std::map<std::string, std::string> entries_;
  std::deque<controller::Action> actions_;
  std::set<controller::ConnectionId> unwelcomed_;  // whose Welcome is kept
};

}  // namespace adamant::kube
