#include "operator/core/processes/registration.h"

#include "operator/core/processes/silence_watch.h"

namespace adamant::controller {

std::string Registration::Objection(const Join& join) const {
  if (join.format_version != kControlFormatVersion) {
    return "this member speaks format version " + std::to_string(join.format_version) +
           ", the controller speaks " + std::to_string(kControlFormatVersion);
  }
  if (processes_.IsSurplus(join.id)) {
    return "the job has no " + ToString(join.id);
  }
  if (join.uid.empty()) {
    return "a member needs a uid";
  }
  const SlotRecord& record = processes_.Record(join.id);
  if (join.incarnation != 0 && (join.incarnation != record.incarnation || join.uid != record.uid)) {
    return ToString(join.id) + " incarnation " + std::to_string(join.incarnation) +
           " was given up; the slot is at " + std::to_string(record.incarnation);
  }
  // One that has joined is known by its incarnation: it may be all that is left of its slot.
  if (join.incarnation == 0 && join.generation < record.generation) {
    return ToString(join.id) + " was started as generation " + std::to_string(join.generation) +
           "; the slot is at " + std::to_string(record.generation);
  }
  return "";
}

Registration::Joined Registration::OnJoin(ConnectionId connection,
                                          const Join& join,
                                          TimePoint now) {
  if (const std::string objection = Objection(join); !objection.empty()) {
    outbox_.Add(Send{.connection = connection, .message = Refused{objection}});
    outbox_.Add(CloseConnection{connection});
    return Joined::kRefused;
  }
  ProcessTable::Slot& slot = processes_.At(join.id);
  SlotRecord& record = processes_.Record(join.id);
  const bool same_process = record.uid == join.uid;
  const bool replaces = slot.liveness == ProcessTable::Liveness::kRunning && !same_process;
  if (slot.connection != 0) {
    if (replaces) {
      outbox_.Add(Send{.connection = slot.connection,
                       .message = Refused{"another process has taken this slot"}});
    }
    outbox_.Add(CloseConnection{slot.connection});
  }
  if (!same_process) {
    ++record.incarnation;
    record.uid = join.uid;
    outbox_.StateChanged();
    outbox_.Tell(Note::Kind::kJoined,
                 join.id,
                 ToString(join.id) + " joined, incarnation " + std::to_string(record.incarnation));
  }
  // The end of a process that an earlier controller did not find, and replaced, would say nothing
  // of the one that is found after all.
  if (join.generation >= record.generation && record.joined != record.incarnation) {
    record.joined = record.incarnation;
    outbox_.StateChanged();
  }
  if (record.generation > 0 && record.concluded == record.generation) {
    --record.concluded;  // it was dismissed, and is wanted after all
    outbox_.StateChanged();
  }
  if (slot.liveness != ProcessTable::Liveness::kRunning || !same_process) {
    slot.since = now;
  }
  slot.liveness = ProcessTable::Liveness::kRunning;
  slot.has_run = true;
  slot.loss.reset();
  slot.connection = connection;
  slot.address = join.address;
  slot.metrics_address = join.metrics_address;
  slot.replication_address = join.replication_address;
  slot.generation = join.generation;
  slot.node = join.node;
  slot.zone = join.zone;
  slot.deadline = now + (same_process ? settings_.silence_timeout : SilenceWatch::kLoadTimeout);
  slot.started = slot.started && same_process;
  return replaces ? Joined::kReplaced : Joined::kNew;
}

void Registration::OnWaiting(std::span<const StartProcess> processes, TimePoint now) {
  for (const StartProcess& process : processes) {
    if (!processes_.Has(process.id) ||
        process.generation != processes_.Record(process.id).generation) {
      continue;
    }
    if (ProcessTable::Slot& slot = processes_.At(process.id);
        slot.liveness == ProcessTable::Liveness::kStarting) {
      slot.deadline = now + settings_.join_timeout;
    }
  }
}

}  // namespace adamant::controller
