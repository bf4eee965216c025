#include "operator/core/job/server_reports.h"

#include <string>
#include <variant>

namespace adamant::controller {

void ServerReports::OnMessage(SlotId server, const MemberMessage& message, TimePoint now) {
  if (const auto* stored = std::get_if<StoredBuckets>(&message)) {
    training_.OnStored(server, *stored);
    FailOnOldState(server, *stored);
    placement_.OnStored(server.slot, *stored);
  } else if (const auto* proposals = std::get_if<Proposals>(&message)) {
    placement_.OnProposals(server.slot, *proposals, now);
  } else if (const auto* served = std::get_if<BucketsReady>(&message)) {
    placement_.OnReady(server.slot, *served);
  } else if (std::holds_alternative<Draining>(message)) {
    placement_.OnDraining(server.slot);
  }
}

void ServerReports::OnProgress(SlotId server,
                               const ParameterServerProgress& progress,
                               TimePoint now) {
  placement_.OnProgress(server.slot, progress);
  training_.OnAlarm(server, progress.alarm, now);
  training_.OnDamages(server, progress.damages);
}

// An incarnation is stored before it is given out. With an older state numbers of snapshots would
// be given out twice, and the model be one of two states at once.
void ServerReports::FailOnOldState(SlotId server, const StoredBuckets& stored) {
  const Incarnation incarnation = processes_.IncarnationOf(server);
  if (stored.previous_incarnation < incarnation) {
    return;
  }
  outcome_.End(
      Phase::kFailed,
      "the stored state of the job is older than the disks of its parameter servers: that of " +
          ToString(server) + " was opened by incarnation " +
          std::to_string(stored.previous_incarnation) + ", and the state gives out " +
          std::to_string(incarnation) +
          ". It seems to have been put back from a backup: put back the newest state, or the disks "
          "of the same time",
      EndKind::kStateIsOld);
}

}  // namespace adamant::controller
