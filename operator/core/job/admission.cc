#include "operator/core/job/admission.h"

#include <vector>

#include "operator/core/diagnosis/recovery.h"

namespace adamant::controller {

void Admission::OnJoin(ConnectionId connection, const Join& join, Clock::TimePoint now) {
  if (TurnsAway(connection, join, now)) {
    outbox_.Add(CloseConnection{connection});
    return;
  }
  const Registration::Joined joined = registration_.OnJoin(connection, join, now);
  if (joined == Registration::Joined::kRefused) {
    return;
  }
  if (joined == Registration::Joined::kReplaced) {
    training_.OnLost(join.id, now);
  }
  SendWelcome(join.id);
  training_.OnJoined(join, now);
}

bool Admission::TurnsAway(ConnectionId connection, const Join& join, Clock::TimePoint now) {
  if (join.generation > (processes_.Has(join.id) ? processes_.GenerationOf(join.id) : 0)) {
    // Another controller has started it, and replaced this one, which must not even stop it.
    return true;
  }
  if (IsFinal(state_.phase)) {
    outbox_.Add(Send{.connection = connection, .message = Stop{state_.message}});
    return true;
  }
  if (training_.ending()) {  // it is being ended
    outbox_.Add(Send{.connection = connection, .message = Refused{"the job goes back"}});
    return true;
  }
  if (join.id.role != Role::kDataServer && TrainingExamples(settings_, state_) == 0) {
    // It asks again until it can be told how long the job is.
    registration_.OnWaiting({{{.id = join.id, .generation = join.generation}}}, now);
    return true;
  }
  return false;
}

void Admission::SendWelcome(SlotId id) {
  const std::vector<DataFile> files =
      id.role == Role::kDataServer ? data_.Binding() : std::vector<DataFile>{};
  processes_.SendTo(id,
                    Welcome{.term = state_.term,
                            .incarnation = processes_.IncarnationOf(id),
                            .job_uid = state_.job_uid,
                            .training_examples = TrainingExamples(settings_, state_),
                            .rate_factor = state_.recovery.rate_factor,
                            .layer_factors = LayerFactors(state_.recovery),
                            .attempt = state_.recovery.attempt,
                            .schedule_epochs = state_.schedule_epochs,
                            .data_files = files});
}

}  // namespace adamant::controller
