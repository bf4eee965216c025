#include "tests/simulation/replication/processes/tap.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "tests/simulation/replication/world/inside.h"

namespace adamant::replication_simulation {
namespace {

/// As a word of a trace.
std::string NameOf(const UpdateKey& key) {
  return "w" + std::to_string(key.slot) + "." + std::to_string(key.incarnation) + "/" +
         std::to_string(key.sequence);
}

}  // namespace

Tap::Tap(World& world,
         const ps::ServerId& self,
         ps::ParameterServer& core,
         Sabotage& sabotage,
         SafeBefore safe_before)
    : world_(world),
      self_(self),
      core_(core),
      host_(HostOf(core)),
      sabotage_(sabotage),
      safe_before_(std::move(safe_before)) {
  Interpose(core, *this);
}

const ps::Bucket& Tap::bucket(BucketId id) const { return BucketAt(core_, id); }

const ps::LiveShard& Tap::ShardAt(BucketId id, ShardId shard) const {
  const std::vector<ShardId>& shards = world_.setup.shards_of[id];
  const auto position = std::ranges::find(shards, shard) - shards.begin();
  return *bucket(id).content().shards[static_cast<std::size_t>(position)];
}

absl::StatusOr<ps::StoredContent> Tap::Stored(BucketId id, const storage::KvStore& disk) const {
  std::vector<ps::ShardIdentity> shards;
  for (const ShardId shard : world_.setup.shards_of[id]) {
    shards.push_back(world_.setup.IdentityOf(shard));
  }
  return ps::LoadContent(kJobUid, id, shards, core_.layout(), disk);
}

void Tap::LookAtStored(const storage::KvStore& disk) {
  stored_.clear();
  for (BucketId id = 0; id < world_.setup.buckets; ++id) {
    if (auto stored = Stored(id, disk); stored.ok()) {
      stored_.emplace(id, *std::move(stored));
    }
  }
}

void Tap::LookAtLoads(const storage::KvStore& disk) {
  for (auto& [id, load] : loads_) {
    if (auto stored = Stored(id, disk); stored.ok()) {
      load = *std::move(stored);
    } else if (const auto earlier = stored_.find(id); earlier != stored_.end()) {
      load = earlier->second;
    }
    if (load.has_value()) {
      world_.checker.Loads(id, *load);
    }
  }
}

// --- What the replicas say

void Tap::Send(const ps::ServerId& to, ps::PeerMessage message) {
  if (std::holds_alternative<ps::PrepareAck>(message.kind) ||
      std::holds_alternative<ps::BeaconAnswer>(message.kind)) {
    world_.checker.Promised(message.bucket, self_, message.configuration_version);
  }
  if (world_.tracer != nullptr) {
    TraceSent(to, message);
  }
  sabotage_.Forge(to, message);
  host_.Send(to, std::move(message));
}

void Tap::Propose(const ps::Proposal& proposal) {
  if (proposal.kind == ps::Proposal::Kind::kPromote && world_.tracer != nullptr) {
    world_.tracer->Proposes(self_.slot);
  }
  sabotage_.Proposed(proposal);
  host_.Propose(proposal);
}

void Tap::Persist(BucketId id, const ps::EntryPtr& entry, std::uint64_t ticket) {
  host_.Persist(id, entry, ticket);
}

void Tap::Commit(BucketId id, const ps::EntryPtr& entry) {
  const ps::Bucket& at = bucket(id);
  world_.checker.Committed(id, self_, at.replica(), *entry);
  if (world_.tracer != nullptr) {
    TraceEntry(*entry);
    world_.tracer->Commits(self_.slot, at.replica().IsPrimary(), entry->lsn);
  }
  // Who lives on in an earlier generation and has not heard applies what is lost already.
  const bool counts = world_.checker.IsCurrent(id, at.content().generation);
  std::vector<std::uint64_t> before;
  for (const ps::LoggedUpdate& update : entry->updates) {
    before.push_back(VersionOf(ShardAt(id, update.shard)));
  }
  host_.Commit(id, entry);
  for (std::size_t i = 0; counts && i < before.size(); ++i) {
    const ps::LoggedUpdate& update = entry->updates[i];
    const ps::ShardContent content = ContentOf(ShardAt(id, update.shard));
    if (content.version > before[i]) {  // else a copy has brought it
      world_.checker.Applied(update, content);
    }
  }
}

void Tap::Load(BucketId id, bool create) {
  loads_.erase(id);
  created_.erase(id);
  if (create) {
    created_.insert(id);
  } else {
    loads_.try_emplace(id);
  }
  host_.Load(id, create);
}

void Tap::Serving(BucketId id) {
  const ps::Bucket& at = bucket(id);
  const auto load = loads_.extract(id);
  const bool is_new = created_.erase(id) > 0;
  // Who was replaced as it read its disk, and has not heard, comes late: nothing follows from it.
  if (world_.checker.IsCurrent(id, at.replica().configuration().generation)) {
    LookAtRestored(id, load.empty() ? nullptr : &load.mapped(), is_new);
  }
  world_.checker.Serves(at.replica().configuration(), at, id);
  world_.loss_window.Serves(self_, id, world_.scheduler.Now());
  host_.Serving(id);
}

void Tap::LookAtRestored(BucketId id, const std::optional<ps::StoredContent>* loaded, bool is_new) {
  const ps::Bucket& at = bucket(id);
  const std::uint64_t snapshot = at.replica().configuration().restored_snapshot;
  if (snapshot != 0 && is_new) {
    world_.checker.MadeAnew(id, at);
  } else if (snapshot != 0 && loaded != nullptr) {
    world_.checker.WentBack(id, self_.slot, snapshot, at);
  } else if (loaded != nullptr && loaded->has_value()) {
    world_.checker.Restored(id, **loaded, at, safe_before_(id, self_.slot));
  }
}

void Tap::Demoted(BucketId id) {
  world_.loss_window.ServesNoMore(self_, id, world_.scheduler.Now());
  host_.Demoted(id);
}

void Tap::StartCopy(BucketId id, const ps::ServerId& learner, std::uint64_t copy, ps::Lsn base) {
  sabotage_.CopyBegins(id, learner, copy);
  if (world_.tracer != nullptr) {
    const ConfigurationVersion configuration_version = bucket(id).replica().configuration().version;
    world_.tracer->Copies(self_.slot, learner.slot, configuration_version, base);
    traced_copy_ = learner;
  }
  host_.StartCopy(id, learner, copy, base);
}

void Tap::StopCopy(BucketId id) {
  host_.StopCopy(id);
  if (world_.tracer != nullptr) {
    world_.tracer->GivesUp(self_.slot);
    traced_copy_.reset();
  }
}

void Tap::Learn(BucketId id, const ps::CopyBegin& begin) { host_.Learn(id, begin); }

void Tap::Clear(BucketId id) {
  loads_.erase(id);
  created_.erase(id);
  world_.loss_window.Leaves(self_, id);
  host_.Clear(id);
}

// --- Traces, of one bucket

void Tap::TraceSent(const ps::ServerId& to, const ps::PeerMessage& message) {
  if (const auto* prepare = std::get_if<ps::Prepare>(&message.kind)) {
    TraceEntry(*prepare->entry);
  } else if (const auto* ack = std::get_if<ps::PrepareAck>(&message.kind)) {
    world_.tracer->Acknowledges(self_.slot, message.configuration_version, ack->acked);
  } else if (const auto* answer = std::get_if<ps::BeaconAnswer>(&message.kind)) {
    world_.tracer->Acknowledges(self_.slot, message.configuration_version, answer->acked);
    world_.tracer->Promises(self_.slot, to.slot, message.configuration_version);
  } else if (std::holds_alternative<ps::Released>(message.kind)) {
    world_.tracer->Releases(self_.slot, message.configuration_version);
  } else if (std::holds_alternative<ps::Beacon>(message.kind) && traced_copy_ == to &&
             !world_.Has(Mutation::kEarlyAdd)) {  // then it has no copy
    world_.tracer->TurnsJoint(self_.slot);        // until then a learner gets none
    traced_copy_.reset();
  }
}

// An entry of this primary's own, when it is seen first.
void Tap::TraceEntry(const ps::Entry& entry) {
  const ps::Replica& replica = bucket(0).replica();
  const std::pair<ConfigurationVersion, ps::Lsn> which{entry.origin, entry.lsn};
  if (entry.updates.empty() || !replica.IsPrimary() ||
      entry.origin != replica.configuration().version ||
      (traced_.has_value() && which <= *traced_)) {
    return;
  }
  traced_ = which;
  world_.tracer->Appends(self_.slot, NameOf(KeyOf(entry.updates[0].values)), entry.lsn);
}

void Tap::TraceAppended(BucketId id) {
  if (world_.tracer == nullptr) {
    return;
  }
  for (const ps::EntryPtr& entry : bucket(id).replica().log().entries()) {
    TraceEntry(*entry);
  }
}

void Tap::TraceAnswer(const UpdateKey& key) {
  if (world_.tracer != nullptr) {
    world_.tracer->Answers(self_.slot, NameOf(key));
  }
}

// A new configuration in a message of its primary: copies come from nobody else.
void Tap::TraceAdoption(const ps::ServerId& from, const ps::PeerMessage& message) {
  if (world_.tracer == nullptr ||
      message.configuration_version <= bucket(message.bucket).replica().configuration().version) {
    return;
  }
  ps::Configuration configuration{.version = message.configuration_version, .primary = from};
  if (const auto* beacon = std::get_if<ps::Beacon>(&message.kind);
      beacon != nullptr && beacon->primary == from) {
    configuration.replicas = beacon->replicas;
  } else if (!std::holds_alternative<ps::CopyBegin>(message.kind)) {
    return;
  }
  world_.tracer->Adopts(self_.slot, configuration);
}

}  // namespace adamant::replication_simulation
