#include "tests/simulation/replication/world/tracer.h"

#include <algorithm>

namespace adamant::replication_simulation {
namespace {

// What tests/model/replay takes.
constexpr std::uint64_t kMostEpochs = 28;
constexpr std::uint64_t kMostEntries = 230;
constexpr std::size_t kMostUpdates = 230;

}  // namespace

void Tracer::Line(const std::string& line) {
  text_ += line + "\n";
  ++steps_;
}

std::set<Tracer::Slot> Tracer::SlotsOf(const controller::Bucket& record) {
  std::set<Slot> slots;
  for (const controller::Holder& member : record.members) {
    slots.insert(member.slot);
  }
  return slots;
}

bool Tracer::full() const {
  return !text_.empty() && (record_.epoch - first_epoch_ >= kMostEpochs ||
                            longest_ >= kMostEntries || all_updates_ >= kMostUpdates);
}

// A new bucket, of one member.
void Tracer::Start(const controller::Bucket& record) {
  const Slot slot = record.primary.slot;
  text_ = "servers s0 s1 s2\n";
  first_epoch_ = record.epoch;
  Server& server = servers_[slot];
  server.fresh = false;
  server.primary = true;
  server.epoch = record.epoch;
  server.members = {slot};
  epochs_[record.epoch].begun = true;
  epochs_[record.epoch].members = {slot};
  text_ += "start " + std::to_string(record.epoch) + " 0 " + Name(slot) + "\n";
}

// --- One update

void Tracer::Appends(Slot primary, const std::string& update, Lsn lsn) {
  Server& server = servers_[primary];
  if (text_.empty() || !server.primary) {
    return;
  }
  Line("append " + Name(primary) + " " + update + " " + std::to_string(lsn));
  updates_.insert(update);
  ++all_updates_;
  longest_ = std::max(longest_, lsn);
}

Tracer::Lsn Tracer::AckedOrBase(Slot slot, Epoch epoch) {
  const Known& known = epochs_[epoch];
  const auto acked = known.acked.find(slot);
  const Lsn lsn = acked == known.acked.end() ? 0 : acked->second;
  return servers_[slot].learner_of > 0 ? lsn : std::max(lsn, known.base);
}

void Tracer::Acknowledges(Slot slot, Epoch epoch, Lsn lsn) {
  Server& server = servers_[slot];
  const bool accepts = server.learner_of > 0
                           ? server.learner_of == epoch
                           : !server.primary && !server.fresh && server.epoch == epoch &&
                                 server.members.contains(slot);
  if (text_.empty() || !accepts || !epochs_[epoch].begun) {
    return;
  }
  for (Lsn next = AckedOrBase(slot, epoch) + 1; next <= lsn; ++next) {
    Line("accept " + Name(slot) + " " + std::to_string(epoch) + " " + std::to_string(next));
    epochs_[epoch].acked[slot] = next;
  }
  CatchUp(slot);
}

void Tracer::Commits(Slot slot, bool as_primary, Lsn lsn) {
  Server& server = servers_[slot];
  server.applied = lsn;
  if (text_.empty()) {
    return;
  }
  if (!as_primary) {
    return CatchUp(slot);
  }
  if (server.committed + 1 != lsn) {
    useless_ = true;
    return;
  }
  Line("commit " + Name(slot) + " " + std::to_string(lsn));
  server.committed = lsn;
  Known& known = epochs_[server.epoch];
  known.announced = std::max(known.announced, lsn);
}

// What a learner applied, or a member before the model's primary began, has a line once it may.
void Tracer::CatchUp(Slot slot) {
  Server& server = servers_[slot];
  if (server.fresh || server.primary) {
    return;
  }
  while (server.committed < server.applied && server.committed < epochs_[server.epoch].announced &&
         AckedOrBase(slot, server.epoch) > server.committed) {
    Line("hear " + Name(slot) + " " + std::to_string(++server.committed));
  }
}

// What came back from a disk is not in the model.
void Tracer::Answers(Slot primary, const std::string& update) {
  if (!text_.empty() && servers_[primary].primary && updates_.contains(update)) {
    Line("answer " + Name(primary) + " " + update);
  }
}

void Tracer::Reads(Slot primary, Epoch epoch) {
  const Server& server = servers_[primary];
  if (!text_.empty() && server.primary && server.epoch == epoch && !epochs_[epoch].handed_over) {
    Line("read " + Name(primary));
  }
}

// --- Leases

void Tracer::Promises(Slot slot, Slot primary, Epoch epoch) {
  Server& server = servers_[slot];
  const Server& to = servers_[primary];
  const bool member = !server.fresh && server.epoch == epoch && to.members.contains(slot);
  const bool learner = server.learner_of == epoch && to.joint == slot;
  if (!text_.empty() && to.primary && to.epoch == epoch && !epochs_[epoch].handed_over &&
      !server.primary && server.proposed == 0 && (member || learner)) {
    Line("promise " + Name(slot) + " " + Name(primary));
    server.promised = true;
  }
}

void Tracer::Proposes(Slot slot) {
  Server& server = servers_[slot];
  if (text_.empty() || !server.promised) {
    return;
  }
  const Known& known = epochs_[server.epoch];
  Line((known.proved || known.handed_over ? "freed " : "expire ") + Name(slot));
  server.promised = false;
}

void Tracer::Releases(Slot primary, Epoch epoch) {
  const Server& server = servers_[primary];
  if (text_.empty() || !server.primary || server.epoch != epoch || epochs_[epoch].handed_over ||
      server.proposed != 0) {
    return;
  }
  Abandon(primary);
  Line("hand_over " + Name(primary));
  epochs_[epoch].handed_over = true;
}

// --- Records

void Tracer::RecordIs(const controller::Bucket& record,
                      const std::vector<controller::Holder>& dead) {
  if (text_.empty() && record.created) {
    if (record.epoch != 1) {
      useless_ = true;
      return;
    }
    record_ = record;
    Start(record);
  }
  if (text_.empty()) {
    return;
  }
  if (record.epoch > record_.epoch + 1) {
    useless_ = true;
  } else if (record.epoch == record_.epoch + 1) {
    TellChange(record);
  }
  record_ = record;
  TellDeaths(dead);
}

void Tracer::TellDeaths(const std::vector<controller::Holder>& dead) {
  Known& known = epochs_[record_.epoch];
  if (!known.proved && std::ranges::find(dead, record_.primary) != dead.end()) {
    Line("proof " + Name(record_.primary.slot));
    known.proved = true;
  }
}

void Tracer::TellChange(const controller::Bucket& record) {
  const Slot slot = record.primary.slot;
  const std::set<Slot> before = SlotsOf(record_);
  const std::set<Slot> after = SlotsOf(record);
  const std::string end = " " + std::to_string(record.epoch);
  const auto other = [&](const std::set<Slot>& more, const std::set<Slot>& less) {
    return Name(*std::ranges::find_if(more, [&](Slot each) { return !less.contains(each); }));
  };
  if (record.generation != record_.generation) {
    Line("recover " + Name(slot) + end);
    generation_ = record.epoch;
    updates_.clear();
  } else if (record.primary != record_.primary) {
    Line("take_over " + Name(slot) + end);
    // A proposal that knew of no hand-over, after one; or of a process that has ended since.
    useless_ = useless_ || servers_[slot].fresh ||
               epochs_[record_.epoch].handed_over != after.contains(record_.primary.slot);
  } else if (after.size() < before.size()) {
    Abandon(slot);
    Line("drop " + Name(slot) + " " + other(before, after) + end);
  } else if (after.size() > before.size()) {
    Line("add " + Name(slot) + " " + other(after, before) + end);
  } else {
    useless_ = true;  // a learner that was not added
  }
  servers_[slot].proposed = record.epoch;
  epochs_[record.epoch].members = after;
}

// The model's server hears of its own change first, however late.
void Tracer::Outcome(Slot slot) {
  Server& server = servers_[slot];
  const Epoch epoch = server.proposed;
  if (epoch == 0) {
    return;
  }
  CatchUp(slot);
  if (epoch == generation_) {
    server = Server{};
    server.fresh = false;
  } else if (!server.primary && server.committed < server.applied) {
    useless_ = true;  // it had learned what the model has no way to tell it
  }
  Line("outcome " + Name(slot) + " " + std::to_string(epoch));
  server.primary = true;
  server.epoch = epoch;
  server.members = epochs_[epoch].members;
  server.proposed = 0;
  server.copying.reset();
  server.joint.reset();
  Known& known = epochs_[epoch];
  known.base = known.announced = server.committed;
  known.begun = true;
}

void Tracer::Adopts(Slot slot, const parameter_server::Configuration& configuration) {
  Server& server = servers_[slot];
  // What a late message tells from before its own change, the model's server does not hear.
  if (text_.empty() || configuration.epoch <= server.epoch ||
      configuration.epoch < server.proposed) {
    return;
  }
  Outcome(slot);
  if (configuration.primary.slot == slot) {
    return;
  }
  const bool member = std::ranges::any_of(configuration.members,
                                          [&](const auto& each) { return each.slot == slot; });
  if (member &&
      (!server.fresh || (server.learner_of > 0 && server.learner_of < configuration.epoch))) {
    Line("learn " + Name(slot) + " " + std::to_string(configuration.epoch));
    server.fresh = false;
    server.primary = false;
    server.learner_of = 0;
    server.epoch = configuration.epoch;
    server.members.clear();
    for (const parameter_server::Holder& each : configuration.members) {
      server.members.insert(each.slot);
    }
    server.copying.reset();
    server.joint.reset();
    CatchUp(slot);
  } else if (!member && server.primary) {
    Line("step_down " + Name(slot));
    server.primary = false;
    server.members.clear();
    server.copying.reset();
    server.joint.reset();
  }
}

// --- Learners and deaths

void Tracer::Copies(Slot primary, Slot learner, Epoch epoch, Lsn base) {
  Server& server = servers_[primary];
  if (text_.empty() || !server.primary || server.proposed != 0 || server.epoch != epoch ||
      record_.epoch != epoch || SlotsOf(record_).contains(learner) ||
      servers_[learner].proposed != 0) {
    return;
  }
  Abandon(primary);
  Line("copy " + Name(primary) + " " + Name(learner));
  server.copying = learner;
  const bool promised = servers_[learner].promised;
  servers_[learner] = Server{};
  servers_[learner].promised = promised;
  servers_[learner].learner_of = epoch;
  servers_[learner].applied = base;
  servers_[learner].copied = base;
  epochs_[epoch].acked[learner] = 0;
}

void Tracer::TurnsJoint(Slot primary) {
  Server& server = servers_[primary];
  if (!text_.empty() && server.copying.has_value() && server.proposed == 0) {
    // It has what the copy held, which nobody had to acknowledge one by one.
    Acknowledges(*server.copying, server.epoch, servers_[*server.copying].copied);
    Line("turn_joint " + Name(primary));
    server.joint = server.copying;
    server.copying.reset();
  }
}

void Tracer::Abandon(Slot slot) {
  Server& server = servers_[slot];
  if (server.primary && server.proposed == 0 &&
      (server.copying.has_value() || server.joint.has_value())) {
    Line("abandon " + Name(slot));
    server.copying.reset();
    server.joint.reset();
  }
}

void Tracer::GivesUp(Slot primary) {
  if (!text_.empty()) {
    Abandon(primary);
  }
}

void Tracer::Crashes(Slot slot) {
  if (!text_.empty()) {
    Line("crash " + Name(slot));
    servers_[slot] = Server{};
  }
}

}  // namespace adamant::replication_simulation
