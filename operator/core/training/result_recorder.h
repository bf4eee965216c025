#pragma once

#include <cstdint>

#include "operator/core/diagnosis/training_meter.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Fills the row of the state's epoch while it is closed and evaluated, and stores it. Tells the
/// user of a model that is at chance.
/// Threads: one thread at a time.
class ResultRecorder {
 public:
  /// The arguments must outlive this.
  ResultRecorder(const JobSettings& settings,
                 JobState& state,
                 Outbox& outbox,
                 const TrainingMeter& meter)
      : settings_(settings), state_(state), outbox_(outbox), meter_(meter) {}

  /// Begins another attempt, of which the user is told anew.
  void Restart() { told_chance_ = false; }

  /// Begins the row of the state's epoch. Of one that was begun before stays what its parts do not
  /// count again.
  void Begin();

  /// Adds what a part has counted.
  void Add(const PartClosed& part);

  /// Notes how long the epoch was trained, as all its parts are closed.
  void OnPartsClosed();

  /// Takes in what workers did in this epoch, as all of them have flushed, and tells what has
  /// become of updates that were rolled back in it.
  void OnWorkersFlushed();

  /// Completes the row with its evaluation, stores it, and judges whether the model is at chance
  /// (JobState::at_chance). Returns false, and does nothing, if it is not the one waited for.
  [[nodiscard]] bool OnEvaluated(const Evaluated& message);

  /// Stores the row of an epoch that has ended while no controller was there.
  void StoreUnattended(const UnattendedEpoch& ended);

 private:
  void TakeLosses(EpochResult& row);
  void Store(const EpochResult& row);
  void TellChance(std::uint64_t most_frequent);

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  const TrainingMeter& meter_;
  bool told_chance_ = false;  // the user knows; once is enough
};

}  // namespace adamant::controller
