#include "tests/unit/services/parameter_server/core/replication/rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

namespace adamant::parameter_server {

RigServer::RigServer(ServerId self_in, const Replica::Options& options, std::deque<Packet>& packets)
    : self(self_in), replica(kBucket, options, *this), packets_(packets) {}

void RigServer::Persist(BucketId /*bucket*/, const EntryPtr& entry, std::uint64_t ticket) {
  to_persist.push_back({entry, ticket});
}

void RigServer::Commit(BucketId /*bucket*/, const EntryPtr& entry) {
  content.push_back(entry->puts.empty() ? "update" : entry->puts[0].key);
}

void RigServer::Load(BucketId /*bucket*/, bool create) { loads.push_back(create); }

void RigServer::Serving(BucketId /*bucket*/) { ++served; }

void RigServer::Demoted(BucketId /*bucket*/) { ++demoted; }

void RigServer::StopCopy(BucketId /*bucket*/) { ++stopped_copies; }

void RigServer::Learn(BucketId /*bucket*/, const CopyBegin& /*begin*/) { ++begun_copies; }

void RigServer::Clear(BucketId /*bucket*/) {
  ++cleared;
  content.clear();
}

// One part: all the names, a line each.
void RigServer::StartCopy(BucketId bucket, const ServerId& learner, std::uint64_t copy, Lsn base) {
  const auto send = [&](decltype(PeerMessage::kind) kind) {
    Send(learner,
         {.bucket = bucket,
          .configuration_version = replica.configuration().version,
          .kind = std::move(kind)});
  };
  send(CopyBegin{
      .copy = copy, .base = base, .generation = replica.configuration().generation, .parts = 1});
  std::string names;
  for (const std::string& name : content) {
    names += name + "\n";
  }
  send(CopyPart{.copy = copy, .content = CopiedRecord{.key = "names", .value = names}});
}

Rig::Rig(const RigOptions& options) : options_(options) {
  for (std::uint32_t slot = 0; slot < options.servers; ++slot) {
    servers_.emplace_back();
    Crash(slot);
  }
  record = {
      .version = 1, .generation = 1, .primary = servers_[0]->self, .replicas = {servers_[0]->self}};
  Publish();
  replica(0).Loaded(now_);
  record.created = true;
  Publish();
  for (int i = 0; i < 20; ++i) {
    Pass(milliseconds(100));
  }
}

bool Rig::Alive(const ServerId& server_id) const {
  return server_id.slot < servers_.size() && servers_[server_id.slot]->self == server_id;
}

void Rig::CutOff(std::uint32_t slot) {
  for (std::uint32_t other = 0; other < servers_.size(); ++other) {
    Cut(slot, other);
    Cut(other, slot);
  }
}

void Rig::Crash(std::uint32_t slot) {
  std::unique_ptr<RigServer>& server = servers_.at(slot);
  ServerId self{.slot = slot, .incarnation = 1};
  if (server != nullptr) {
    self.incarnation = server->self.incarnation + 1;
    graveyard_.push_back(std::move(server));
  }
  server = std::make_unique<RigServer>(self,
                                       Replica::Options{.self = self,
                                                        .times = {},
                                                        .min_in_sync = options_.min_in_sync,
                                                        .max_log_bytes = options_.max_log_bytes,
                                                        .logging = options_.logging},
                                       packets);
}

void Rig::ProveDeaths() {
  dead_.clear();
  for (const auto& each : graveyard_) {
    dead_.push_back(each->self);
  }
  for (const auto& each : servers_) {
    each->replica.OnDead(dead_, now_);
  }
}

Lsn Rig::Append(std::uint32_t slot, const std::string& name) {
  return replica(slot).Append({.puts = {{.key = name, .value = {}}}, .bytes = 100}, now_);
}

Lsn Rig::AppendUpdate(std::uint32_t slot) {
  LoggedUpdate update;
  update.shard = 1;
  return replica(slot).Append({.updates = {update}, .bytes = 100}, now_);
}

void Rig::Deliver(const Packet& packet) {
  if (!Alive(packet.to)) {
    return;
  }
  RigServer& to = *servers_[packet.to.slot];
  if (std::holds_alternative<CopyPart>(packet.message.kind)) {
    return CopyArrived(packet);
  }
  to.replica.OnMessage(packet.from, packet.message, now_);
  if (const auto* ack = std::get_if<CopyAck>(&packet.message.kind);
      ack != nullptr &&
      packet.message.configuration_version == to.replica.configuration().version) {
    to.replica.Copied(ack->copy, now_);
  }
}

void Rig::CopyArrived(const Packet& packet) {
  RigServer& to = *servers_[packet.to.slot];
  const auto& part = std::get<CopyPart>(packet.message.kind);
  if (packet.message.configuration_version != to.replica.configuration().version ||
      part.copy != to.replica.copy()) {
    return;
  }
  to.content.clear();
  const std::string& names = std::get<CopiedRecord>(part.content).value;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = names.find('\n', begin);
    to.content.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  to.replica.Installed(part.copy);
  to.Send(packet.from, Message(packet.message.configuration_version, CopyAck{.copy = part.copy}));
}

bool Rig::Persist() {
  bool any = false;
  for (const auto& server : servers_) {
    for (const ToPersist& each : std::exchange(server->to_persist, {})) {
      server->replica.Persisted(each.ticket, now_);
      any = true;
    }
  }
  return any;
}

void Rig::Settle() {
  for (bool more = true; more;) {
    more = persists && Persist();
    while (!packets.empty()) {
      const Packet packet = std::move(packets.front());
      packets.pop_front();
      if (!cut_.contains({packet.from.slot, packet.to.slot}) && !(drop_ && drop_(packet))) {
        Deliver(packet);
      }
      more = true;
    }
    const ConfigurationVersion before = record.version;
    Decide();
    more = more || record.version != before;
  }
}

void Rig::Pass(Clock::Duration time) {
  const Clock::TimePoint end = now_ + time;
  Settle();
  while (now_ < end) {
    Clock::TimePoint next = end;
    for (const auto& server : servers_) {
      next = std::min(next, server->replica.NextTick());
    }
    now_ = std::max(next, now_ + milliseconds(1));
    for (const auto& server : servers_) {
      if (server->replica.NextTick() <= now_) {
        server->replica.Tick(now_);
        EXPECT_GT(server->replica.NextTick(), now_) << "it would spin";
      }
    }
    Settle();
  }
}

// --- The controller

void Rig::Decide() {
  if (!decides) {
    return;
  }
  for (const auto& server : servers_) {
    for (const Proposal& proposal : std::exchange(server->proposals, {})) {
      if (!deaf.contains(server->self.slot) && Apply(proposal)) {
        Publish();
      }
    }
  }
}

bool Rig::Apply(const Proposal& proposal) {
  const bool refused = (proposal.kind == Proposal::Kind::kAdd && !adds) ||
                       (proposal.kind == Proposal::Kind::kDrop && !drops);
  if (proposal.configuration_version != record.version || refused) {
    return false;
  }
  const auto leave = [&](const ServerId& server_id) { std::erase(record.replicas, server_id); };
  switch (proposal.kind) {
    case Proposal::Kind::kPromote:
      if (!proposal.released) {
        leave(record.primary);
      }
      record.primary = proposal.proposer;
      break;
    case Proposal::Kind::kDrop:
      leave(proposal.subject);
      break;
    case Proposal::Kind::kAdd:
      record.replicas.push_back(proposal.subject);
      break;
  }
  ++record.version;
  record.successor.reset();
  record.departing.reset();
  return true;
}

void Rig::Publish() {
  record.learner.reset();
  for (const auto& server : servers_) {
    if (names_learners && record.replicas.size() < options_.copies && !record.Has(server->self) &&
        !record.learner.has_value()) {
      record.learner = server->self;
    }
  }
  for (const auto& server : servers_) {
    if (!deaf.contains(server->self.slot)) {
      server->replica.OnConfiguration(record, now_);
    }
  }
}

void Rig::Write(std::uint32_t primary, const std::vector<std::uint32_t>& replicas) {
  ++record.version;
  record.primary = servers_.at(primary)->self;
  record.replicas.clear();
  for (const std::uint32_t slot : replicas) {
    record.replicas.push_back(servers_.at(slot)->self);
  }
  Publish();
}

std::vector<std::uint32_t> Rig::members() const {
  std::vector<std::uint32_t> slots;
  for (const ServerId& replica : record.replicas) {
    slots.push_back(replica.slot);
  }
  std::ranges::sort(slots);
  return slots;
}

}  // namespace adamant::parameter_server
