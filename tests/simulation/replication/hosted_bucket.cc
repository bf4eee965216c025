#include "tests/simulation/replication/hosted_bucket.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace adamant::replication_simulation {
namespace {

using Role = ps::Replica::Role;

std::string NameOf(Role role) {
  static constexpr const char* kNames[] = {"nothing",
                                           "learner",
                                           "secondary",
                                           "proposing",
                                           "loading",
                                           "reconciling",
                                           "serving",
                                           "draining"};
  return kNames[static_cast<std::size_t>(role)];
}

/// As a word of a trace.
std::string NameOf(const ps::LoggedUpdate& update) {
  return "w" + std::to_string(update.writer.slot) + "." +
         std::to_string(update.writer.incarnation) + "/" + std::to_string(update.sequence);
}

ps::Replica::Options OptionsOf(const World& world, const ps::Holder& self) {
  ps::Replica::Options options;
  options.self = self;
  options.min_in_sync = world.Has(Mutation::kMinInSyncIgnored) ? 1 : world.setup.min_in_sync;
  options.max_log_bytes = 10'000;
  options.logging =
      world.setup.logged() ? ps::Replica::Logging::kAll : ps::Replica::Logging::kNothing;
  if (world.Has(Mutation::kBadClock)) {
    options.times.grace = milliseconds(1500);
  }
  return options;
}

}  // namespace

HostedBucket::HostedBucket(World& world, const Place& place, Disk& disk, BucketOwner& owner)
    : world_(world), place_(place), disk_(disk), owner_(owner), replica_(NewReplica()) {}

std::unique_ptr<ps::Replica> HostedBucket::NewReplica() {
  return std::make_unique<ps::Replica>(
      place_.bucket, OptionsOf(world_, place_.holder), static_cast<ps::ReplicaHost&>(*this));
}

// --- What happens

void HostedBucket::OnConfiguration(const ps::Configuration& configuration) {
  if (world_.tracer != nullptr) {
    world_.tracer->Adopts(place_.holder.slot, configuration);
  }
  if (world_.Has(Mutation::kFollowerCutsLog)) {
    CutLog(configuration);
  }
  if (world_.Has(Mutation::kReleasedWhileServing) && configuration.heir.has_value()) {
    if (replica_->role() == Role::kServing && configuration.heir != place_.holder &&
        configuration.epoch == replica_->configuration().epoch) {
      Send(*configuration.heir,
           {.bucket = place_.bucket, .epoch = configuration.epoch, .kind = ps::Released{}});
    }
    ps::Configuration without = configuration;
    without.heir.reset();
    replica_->OnConfiguration(without, place_.now());
  } else {
    replica_->OnConfiguration(configuration, place_.now());
  }
  Settle();
}

void HostedBucket::OnDead(const std::vector<ps::Holder>& dead) {
  replica_->OnDead(dead, place_.now());
  Settle();
}

void HostedBucket::OnPeerMessage(ps::Holder from, ps::PeerMessage message) {
  Distort(from, message);
  if (world_.tracer != nullptr && message.epoch > replica_->configuration().epoch) {
    TraceAdoption(from, message);
  }
  replica_->OnMessage(from, message, place_.now());
  if (message.epoch == replica_->configuration().epoch) {
    if (const auto* part = std::get_if<ps::CopyPart>(&message.kind)) {
      OnCopyPart(from, *part);
    } else if (const auto* ack = std::get_if<ps::CopyAck>(&message.kind)) {
      OnCopyAck(from, *ack);
    }
  }
  Settle();
}

void HostedBucket::OnOpened(const ps::Holder& peer) {
  replica_->OnConnected(peer, place_.now());
  Settle();
}

void HostedBucket::Tick() {
  if (replica_->NextTick() <= place_.now()) {
    replica_->Tick(place_.now());
  }
  if (sending_.has_value() && sending_->again_at <= place_.now()) {
    SendPart();
  }
  Settle();
}

Clock::TimePoint HostedBucket::NextTick() const {
  const Clock::TimePoint next = replica_->NextTick();
  return sending_.has_value() ? std::min(next, sending_->again_at) : next;
}

void HostedBucket::Settle() {
  touched_ = touched_ || replica_->role() != Role::kNone;
  if (replica_->role() != role_) {
    role_ = replica_->role();
    world_.scheduler.Record(place_.life->name,
                            NameOf(role_) + " of bucket " + std::to_string(place_.bucket),
                            replica_->configuration().epoch,
                            replica_->prepared());
  }
  world_.checker.Watch(place_.bucket, place_.holder, *replica_);
  AnswerWaiting();
}

const Content* HostedBucket::Readable() const {
  if (!content_.has_value()) {
    return nullptr;
  }
  const bool primary = replica_->role() == Role::kServing;
  const bool readable =
      replica_->CanRead(place_.now()) || (world_.Has(Mutation::kReadsWithoutLease) && primary) ||
      (world_.Has(Mutation::kReadsBeforeReconciled) && replica_->role() == Role::kReconciling);
  return readable ? &*content_ : nullptr;
}

// --- Pushes

// Returns the lsn that the answer waits for.
ps::Lsn HostedBucket::Judge(const Push::Update& update,
                            const ps::Writer& writer,
                            ps::Entry& entry,
                            PushAnswer& answer) {
  Head& head = heads_[update.shard][writer.slot];
  if (writer.incarnation < head.included.incarnation) {
    answer.stale = true;
    return 0;
  }
  if (writer.incarnation > head.included.incarnation) {
    head = {.included = {.incarnation = writer.incarnation, .sequence = 0}, .lsn = 0};
  }
  std::uint64_t& last = head.included.sequence;
  const bool next = update.sequence == last + 1;
  const bool again = world_.Has(Mutation::kNoDeduplication) && update.sequence == last;
  if (next || again) {
    last = update.sequence;
    head.lsn = replica_->prepared() + 1;
    entry.updates.push_back({.shard = update.shard, .writer = writer, .sequence = update.sequence});
  }
  answer.acks.push_back({update.shard, update.sequence, last + 1});
  return head.lsn;
}

void HostedBucket::OnPush(replication_simulation::Place writer, const Push& push) {
  PushAnswer answer{.id = push.id, .bucket = place_.bucket, .acks = {}};
  if (replica_->role() != Role::kServing) {
    return owner_.Answer(writer, answer);
  }
  if (!replica_->CanAppend()) {
    return;  // it will ask again
  }
  answer.primary = true;
  ps::Entry entry{.bytes = 100};
  ps::Lsn wait = 0;
  for (const Push::Update& update : push.updates) {
    wait = std::max(wait, Judge(update, push.writer, entry, answer));
  }
  waiting_.emplace(wait, Waiting{writer, push, std::move(answer)});
  if (!entry.updates.empty()) {
    if (world_.tracer != nullptr) {
      world_.tracer->Appends(
          place_.holder.slot, NameOf(entry.updates[0]), replica_->prepared() + 1);
    }
    replica_->Append(std::move(entry), place_.now());
  }
  Settle();
}

void HostedBucket::AnswerWaiting() {
  while (!waiting_.empty() && waiting_.begin()->first <= replica_->committed()) {
    const Waiting waiting = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    for (const PushAnswer::Ack& ack : waiting.answer.acks) {
      if (ack.sequence >= ack.expected) {
        continue;
      }
      world_.checker.Acknowledged(place_.bucket, ack.shard, waiting.push.writer, ack.sequence);
      if (world_.tracer != nullptr) {
        world_.tracer->Answers(place_.holder.slot,
                               NameOf({.writer = waiting.push.writer, .sequence = ack.sequence}));
      }
    }
    owner_.Answer(waiting.writer, waiting.answer);
  }
}

void HostedBucket::RebuildHeads() {
  heads_.assign(world_.setup.shards, {});
  for (std::uint32_t shard = 0; shard < world_.setup.shards; ++shard) {
    for (const auto& [writer, included] : content_->shards[shard].writers) {
      heads_[shard][writer] = {.included = included, .lsn = 0};
    }
  }
}

// --- Traces

void HostedBucket::TraceAdoption(const ps::Holder& from, const ps::PeerMessage& message) {
  ps::Configuration configuration{.epoch = message.epoch, .primary = from};
  if (const auto* beacon = std::get_if<ps::Beacon>(&message.kind);
      beacon != nullptr && beacon->primary == from) {
    configuration.members = beacon->members;
  } else if (!std::holds_alternative<ps::CopyBegin>(message.kind)) {
    return;
  }
  world_.tracer->Adopts(place_.holder.slot, configuration);
}

void HostedBucket::Trace(const ps::Holder& to, const ps::PeerMessage& message) {
  const std::uint32_t self = place_.holder.slot;
  if (const auto* ack = std::get_if<ps::PrepareAck>(&message.kind)) {
    world_.tracer->Acknowledges(self, message.epoch, ack->acked);
  } else if (const auto* answer = std::get_if<ps::BeaconAnswer>(&message.kind)) {
    world_.tracer->Acknowledges(self, message.epoch, answer->acked);
    world_.tracer->Promises(self, to.slot, message.epoch);
  } else if (std::holds_alternative<ps::Released>(message.kind)) {
    world_.tracer->Releases(self, message.epoch);
  }
}

// --- ReplicaHost

void HostedBucket::Send(const ps::Holder& to, ps::PeerMessage message) {
  if (std::holds_alternative<ps::PrepareAck>(message.kind) ||
      std::holds_alternative<ps::BeaconAnswer>(message.kind)) {
    world_.checker.Promised(place_.bucket, place_.holder, message.epoch);
  }
  if (world_.tracer != nullptr) {
    Trace(to, message);
  }
  Forge(to, message);
  owner_.SendToPeer(to, std::move(message));
}

void HostedBucket::Propose(const ps::Proposal& proposal) {
  proposed_learner_.reset();
  if (proposal.kind == ps::Proposal::Kind::kTakeOver && world_.tracer != nullptr) {
    world_.tracer->Proposes(place_.holder.slot);
  }
  if (proposal.kind == ps::Proposal::Kind::kAdd) {
    proposed_learner_ = proposal.subject;
  }
  ps::Proposal sent = proposal;
  sent.released = proposal.released && !world_.Has(Mutation::kReleasedWhileServing);
  owner_.SendProposal(sent);
}

void HostedBucket::Commit(BucketId /*bucket*/, const ps::EntryPtr& entry) {
  world_.checker.Committed(place_.bucket, place_.holder, *replica_, *entry);
  if (world_.tracer != nullptr) {
    world_.tracer->Commits(place_.holder.slot, replica_->IsPrimary(), entry->lsn);
  }
  // Who lives on in an earlier generation and has not heard applies what is lost already.
  const bool counts = world_.checker.IsCurrent(place_.bucket, content_->generation);
  Advance(*content_, *entry, [&](const ps::LoggedUpdate& update, const ShardState& shard) {
    if (counts) {
      world_.checker.Applied(place_.bucket, update.shard, update, shard);
    }
  });
  dirty_ = true;
}

void HostedBucket::Serving(BucketId /*bucket*/) {
  RebuildHeads();
  world_.checker.Serves(place_.bucket, replica_->configuration(), *content_);
  owner_.ReportServing(place_.bucket, false);
}

void HostedBucket::Demoted(BucketId /*bucket*/) {
  for (const auto& [lsn, waiting] : std::exchange(waiting_, {})) {
    owner_.Answer(waiting.writer, {.id = waiting.push.id, .bucket = place_.bucket, .acks = {}});
  }
}

void HostedBucket::Clear(BucketId /*bucket*/) {
  ++ticket_;
  content_.reset();
  receiving_.reset();
}

}  // namespace adamant::replication_simulation
