#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/kube/api/api_pause.h"
#include "operator/kube/job/deferred_actions.h"
#include "operator/kube/job/job_notes.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/storage/kube_state_store.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Has a controller's actions performed in their order, those that depend on what it has decided
/// once that is stored. What cannot be stored is held, and stored some time later.
/// Threads: one.
class ActionQueue {
 public:
  /// The first four must outlive this. `perform` performs one action that stores nothing.
  ActionQueue(KubeStateStore& store,
              JobWriter& writer,
              JobNotes& notes,
              const Clock& clock,
              std::function<void(const controller::Action&)> perform)
      : store_(store),
        writer_(writer),
        notes_(notes),
        clock_(clock),
        perform_(std::move(perform)) {}

  /// The state was read, which has this version.
  void StartFrom(std::uint64_t version) { version_ = version; }

  void Perform(std::vector<controller::Action> actions);

  /// Runs `handle`: one write carries all that is to be stored of what it performs.
  void Together(const std::function<void()>& handle);

  /// Runs `handle` while a request waits for the API: whatever is to be stored is held.
  void Meanwhile(const std::function<void()>& handle);

  /// Stores what is held, if there is anything. Errors: those of the API; Aborted: taken_over().
  absl::Status StoreHeld();

  /// Something waits to be stored.
  [[nodiscard]] bool holds() const { return !held_.empty(); }

  /// Nothing waits to be stored, and the API may be asked.
  [[nodiscard]] bool IsClear() const { return !holds() && pause_.Check(clock_.Now()).ok(); }

  /// Not OK: another controller has written to the state, and nothing that this one thinks counts
  /// any more, nor is performed.
  [[nodiscard]] const absl::Status& taken_over() const { return taken_over_; }
  void OnTakenOver(const absl::Status& status) { taken_over_ = status; }

 private:
  void PerformAll();
  void Do(const controller::Action& action);
  absl::Status Store(const std::vector<controller::Persist::Entry>& entries);

  KubeStateStore& store_;
  JobWriter& writer_;
  JobNotes& notes_;
  const Clock& clock_;
  const std::function<void(const controller::Action&)> perform_;

  std::uint64_t version_ = 0;               // of the state that is stored
  std::deque<controller::Action> actions_;  // to be performed in order
  DeferredActions held_;
  bool waits_ = false;     // for an answer of the API
  bool collects_ = false;  // what is to be stored: several events are handled
  ApiPause pause_;
  absl::Status taken_over_;
};

}  // namespace adamant::kube
