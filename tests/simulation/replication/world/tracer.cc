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

std::set<Tracer::Slot> Tracer::SlotsOf(const controller::Configuration& record) {
  std::set<Slot> slots;
  for (const controller::ServerId& replica : record.replicas) {
    slots.insert(replica.slot);
  }
  return slots;
}

bool Tracer::full() const {
  return !text_.empty() && (record_.version - first_epoch_ >= kMostEpochs ||
                            longest_ >= kMostEntries || all_updates_ >= kMostUpdates);
}

// A new bucket, of one replica.
void Tracer::Start(const controller::Configuration& record) {
  const Slot slot = record.primary.slot;
  text_ = "servers s0 s1 s2\n";
  first_epoch_ = record.version;
  Server& server = servers_[slot];
  server.fresh = false;
  server.primary = true;
  server.configuration_version = record.version;
  server.replicas = {slot};
  epochs_[record.version].begun = true;
  epochs_[record.version].replicas = {slot};
  text_ += "start " + std::to_string(record.version) + " 0 " + Name(slot) + "\n";
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

Tracer::Lsn Tracer::AckedOrBase(Slot slot, ConfigurationVersion configuration_version) {
  const Known& known = epochs_[configuration_version];
  const auto acked = known.acked.find(slot);
  const Lsn lsn = acked == known.acked.end() ? 0 : acked->second;
  return servers_[slot].learner_of > 0 ? lsn : std::max(lsn, known.base);
}

void Tracer::Acknowledges(Slot slot, ConfigurationVersion configuration_version, Lsn lsn) {
  Server& server = servers_[slot];
  const bool accepts = server.learner_of > 0
                           ? server.learner_of == configuration_version
                           : !server.primary && !server.fresh &&
                                 server.configuration_version == configuration_version &&
                                 server.replicas.contains(slot);
  if (text_.empty() || !accepts || !epochs_[configuration_version].begun) {
    return;
  }
  for (Lsn next = AckedOrBase(slot, configuration_version) + 1; next <= lsn; ++next) {
    Line("accept " + Name(slot) + " " + std::to_string(configuration_version) + " " +
         std::to_string(next));
    epochs_[configuration_version].acked[slot] = next;
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
  Known& known = epochs_[server.configuration_version];
  known.announced = std::max(known.announced, lsn);
}

// What a learner applied, or a replica before the model's primary began, has a line once it may.
void Tracer::CatchUp(Slot slot) {
  Server& server = servers_[slot];
  if (server.fresh || server.primary) {
    return;
  }
  while (server.committed < server.applied &&
         server.committed < epochs_[server.configuration_version].announced &&
         AckedOrBase(slot, server.configuration_version) > server.committed) {
    Line("hear " + Name(slot) + " " + std::to_string(++server.committed));
  }
}

// What came back from a disk is not in the model.
void Tracer::Answers(Slot primary, const std::string& update) {
  if (!text_.empty() && servers_[primary].primary && updates_.contains(update)) {
    Line("answer " + Name(primary) + " " + update);
  }
}

void Tracer::Reads(Slot primary, ConfigurationVersion configuration_version) {
  const Server& server = servers_[primary];
  if (!text_.empty() && server.primary && server.configuration_version == configuration_version &&
      !epochs_[configuration_version].handed_over) {
    Line("read " + Name(primary));
  }
}

// --- Leases

void Tracer::Promises(Slot slot, Slot primary, ConfigurationVersion configuration_version) {
  Server& server = servers_[slot];
  const Server& to = servers_[primary];
  const bool replica = !server.fresh && server.configuration_version == configuration_version &&
                       to.replicas.contains(slot);
  const bool learner = server.learner_of == configuration_version && to.joint == slot;
  if (!text_.empty() && to.primary && to.configuration_version == configuration_version &&
      !epochs_[configuration_version].handed_over && !server.primary && server.proposed == 0 &&
      (replica || learner)) {
    Line("promise " + Name(slot) + " " + Name(primary));
    server.promised = true;
  }
}

void Tracer::Proposes(Slot slot) {
  Server& server = servers_[slot];
  if (text_.empty() || !server.promised) {
    return;
  }
  const Known& known = epochs_[server.configuration_version];
  Line((known.proved || known.handed_over ? "freed " : "expire ") + Name(slot));
  server.promised = false;
}

void Tracer::Releases(Slot primary, ConfigurationVersion configuration_version) {
  const Server& server = servers_[primary];
  if (text_.empty() || !server.primary || server.configuration_version != configuration_version ||
      epochs_[configuration_version].handed_over || server.proposed != 0) {
    return;
  }
  Abandon(primary);
  Line("hand_over " + Name(primary));
  epochs_[configuration_version].handed_over = true;
}

// --- Records

void Tracer::RecordIs(const controller::Configuration& record,
                      const std::vector<controller::ServerId>& dead) {
  if (text_.empty() && record.created) {
    if (record.version != 1) {
      useless_ = true;
      return;
    }
    record_ = record;
    Start(record);
  }
  if (text_.empty()) {
    return;
  }
  if (record.version > record_.version + 1) {
    useless_ = true;
  } else if (record.version == record_.version + 1) {
    TellChange(record);
  }
  record_ = record;
  TellDeaths(dead);
}

void Tracer::TellDeaths(const std::vector<controller::ServerId>& dead) {
  Known& known = epochs_[record_.version];
  if (!known.proved && std::ranges::find(dead, record_.primary) != dead.end()) {
    Line("proof " + Name(record_.primary.slot));
    known.proved = true;
  }
}

void Tracer::TellChange(const controller::Configuration& record) {
  const Slot slot = record.primary.slot;
  const std::set<Slot> before = SlotsOf(record_);
  const std::set<Slot> after = SlotsOf(record);
  const std::string end = " " + std::to_string(record.version);
  const auto other = [&](const std::set<Slot>& more, const std::set<Slot>& less) {
    return Name(*std::ranges::find_if(more, [&](Slot each) { return !less.contains(each); }));
  };
  if (record.generation != record_.generation) {
    Line("recover " + Name(slot) + end);
    generation_ = record.version;
    updates_.clear();
  } else if (record.primary != record_.primary) {
    Line("take_over " + Name(slot) + end);
    // A proposal that knew of no transfer, after one; or of a process that has ended since.
    useless_ = useless_ || servers_[slot].fresh ||
               epochs_[record_.version].handed_over != after.contains(record_.primary.slot);
  } else if (after.size() < before.size()) {
    Abandon(slot);
    Line("drop " + Name(slot) + " " + other(before, after) + end);
  } else if (after.size() > before.size()) {
    Line("add " + Name(slot) + " " + other(after, before) + end);
  } else {
    useless_ = true;  // a learner that was not added
  }
  servers_[slot].proposed = record.version;
  epochs_[record.version].replicas = after;
}

// The model's server hears of its own change first, however late.
void Tracer::Outcome(Slot slot) {
  Server& server = servers_[slot];
  const ConfigurationVersion configuration_version = server.proposed;
  if (configuration_version == 0) {
    return;
  }
  CatchUp(slot);
  if (configuration_version == generation_) {
    server = Server{};
    server.fresh = false;
  } else if (!server.primary && server.committed < server.applied) {
    useless_ = true;  // it had learned what the model has no way to tell it
  }
  Line("outcome " + Name(slot) + " " + std::to_string(configuration_version));
  server.primary = true;
  server.configuration_version = configuration_version;
  server.replicas = epochs_[configuration_version].replicas;
  server.proposed = 0;
  server.copying.reset();
  server.joint.reset();
  Known& known = epochs_[configuration_version];
  known.base = known.announced = server.committed;
  known.begun = true;
}

void Tracer::Adopts(Slot slot, const parameter_server::Configuration& configuration) {
  Server& server = servers_[slot];
  // What a late message tells from before its own change, the model's server does not hear.
  if (text_.empty() || configuration.version <= server.configuration_version ||
      configuration.version < server.proposed) {
    return;
  }
  Outcome(slot);
  if (configuration.primary.slot == slot) {
    return;
  }
  const bool replica = std::ranges::any_of(configuration.replicas,
                                           [&](const auto& each) { return each.slot == slot; });
  if (replica &&
      (!server.fresh || (server.learner_of > 0 && server.learner_of < configuration.version))) {
    Line("learn " + Name(slot) + " " + std::to_string(configuration.version));
    server.fresh = false;
    server.primary = false;
    server.learner_of = 0;
    server.configuration_version = configuration.version;
    server.replicas.clear();
    for (const parameter_server::ServerId& each : configuration.replicas) {
      server.replicas.insert(each.slot);
    }
    server.copying.reset();
    server.joint.reset();
    CatchUp(slot);
  } else if (!replica && server.primary) {
    Line("step_down " + Name(slot));
    server.primary = false;
    server.replicas.clear();
    server.copying.reset();
    server.joint.reset();
  }
}

// --- Learners and deaths

void Tracer::Copies(Slot primary,
                    Slot learner,
                    ConfigurationVersion configuration_version,
                    Lsn base) {
  Server& server = servers_[primary];
  if (text_.empty() || !server.primary || server.proposed != 0 ||
      server.configuration_version != configuration_version ||
      record_.version != configuration_version || SlotsOf(record_).contains(learner) ||
      servers_[learner].proposed != 0) {
    return;
  }
  Abandon(primary);
  Line("copy " + Name(primary) + " " + Name(learner));
  server.copying = learner;
  const bool promised = servers_[learner].promised;
  servers_[learner] = Server{};
  servers_[learner].promised = promised;
  servers_[learner].learner_of = configuration_version;
  servers_[learner].applied = base;
  servers_[learner].copied = base;
  epochs_[configuration_version].acked[learner] = 0;
}

void Tracer::TurnsJoint(Slot primary) {
  Server& server = servers_[primary];
  if (!text_.empty() && server.copying.has_value() && server.proposed == 0) {
    // It has what the copy held, which nobody had to acknowledge one by one.
    Acknowledges(*server.copying, server.configuration_version, servers_[*server.copying].copied);
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
