#include "tests/simulation/job/processes/parameter_server_process.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "tests/simulation/job/network/convert.h"

namespace adamant::simulation {
namespace {

using parameter_server::Access;

/// Between the time that something for the disk is wanted or due and the time that it is done.
constexpr auto kDiskTime = milliseconds(20);

/// A full disk is tried again after this time.
constexpr auto kDiskRetry = seconds(1);

constexpr char kLedgerPrefix[] = "ledger/";

std::uint32_t PartOf(const std::string& key) {
  return static_cast<std::uint32_t>(std::stoul(key.substr(std::size(kLedgerPrefix) - 1)));
}

/// Who has taken over, or has proposed to, learns of no commits from others.
bool Follows(parameter_server::Replica::Role role) {
  using enum parameter_server::Replica::Role;
  return role == kNone || role == kLearner || role == kSecondary;
}

}  // namespace

ParameterServerProcess::ParameterServerProcess(World& world,
                                               const ProcessStart& start,
                                               std::function<void(std::string)> exited,
                                               Disk& disk)
    : MemberProcess(world, start, std::move(exited)), disk_(disk), window_(world.setup, clock_) {}

absl::Status ParameterServerProcess::Start(const controller::Welcome& welcome) {
  if (std::exchange(disk_.locked, true)) {
    return absl::UnavailableError("another process has the data folder");
  }
  has_disk_ = true;
  job_uid_ = welcome.job_uid;
  window_.Hinder(std::max(Clock::Duration(0), disk_.full_until - Now()) + kDiskRetry);
  if (Now() < disk_.slow_until) {
    window_.Hinder(disk_.slow_until - Now() + Disk::kSlow);
  }
  const parameter_server::ServerId self{.slot = start().id.slot, .incarnation = incarnation()};
  parameter_server::Driver& driver = *this;
  core_.emplace(world_.setup.ParameterServerOptions(self, welcome.job_uid), disk_, clock_, driver);
  peers_.emplace(world_, *this, self, [this](const parameter_server::ServerId& peer) {
    core_->OnPeerConnected(peer);
  });
  open_ = true;
  WantStorage();
  Tick();
  return absl::OkStatus();
}

void ParameterServerProcess::OnAttending() {
  if (read_) {
    TellStored();
    for (const parameter_server::BucketReport& report : core_->Reports()) {
      Report(report);
    }
  }
}

void ParameterServerProcess::OnControl(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    auto configurations = view->buckets;
    if (world_.Has(Mutation::kInitialisesAgain) && observed_.empty() && incarnation() > 1) {
      for (parameter_server::Configuration& line : configurations) {
        line.created = false;
      }
    }
    for (BucketId bucket = 0; bucket < configurations.size(); ++bucket) {
      versions_[bucket] = configurations[bucket].version;
    }
    core_->SetConfigurations(configurations, view->dead);
    peers_->Update(*view);
  } else if (const auto* take = std::get_if<controller::TakeSnapshot>(&message)) {
    core_->RefuseWritersBelow(take->writers_from);
    for (std::uint32_t slot = 0; slot < take->writers_from.size(); ++slot) {
      Incarnation& from = writers_from_[slot];
      from = std::max(from, take->writers_from[slot]);
    }
    snapshots_.push_back(*take);
    WantStorage();
  }
}

controller::Heartbeat ParameterServerProcess::MakeHeartbeat() {
  controller::ParameterServerProgress progress{.updates_applied = core_->updates_applied(),
                                               .dirty_bytes = core_->dirty().bytes(),
                                               .flushes = core_->flusher().totals().flushes,
                                               .alarm = core_->alarm()};
  for (const parameter_server::BucketProgress& bucket : core_->Progress()) {
    progress.buckets.push_back(bucket);
  }
  return {.progress = std::move(progress)};
}

void ParameterServerProcess::Tick() {
  if (open_) {
    core_->Tick();
    HearServed();
    After(world_.setup.times.beacon / 10, [this] { Tick(); });
  }
}

// --- What the core asks for

void ParameterServerProcess::SendToPeer(const parameter_server::ServerId& to,
                                        parameter_server::PeerMessage message) {
  peers_->SendTo(to, std::move(message));
}

void ParameterServerProcess::Propose(const parameter_server::Proposal& proposal) {
  Tell(protocol::Proposals{{proposal}});
}

void ParameterServerProcess::Report(const parameter_server::BucketReport& report) {
  Tell(parameter_server::ReadyOf({report}));
}

void ParameterServerProcess::WantApply() {
  if (!std::exchange(apply_planned_, true)) {
    After(world_.scheduler.Random(microseconds(5), microseconds(500)), [this] {
      apply_planned_ = false;
      core_->ApplyCommitted();
    });
  }
}

void ParameterServerProcess::WantStorage() {
  PlanStorage(Now() + world_.scheduler.Random(milliseconds(1), kDiskTime));
}

// --- Traffic

void ParameterServerProcess::OnServiceMessage(StreamId stream,
                                              StreamKind /*kind*/,
                                              Message& message) {
  if (!open_) {
    return world_.network.Close(stream, *this);
  }
  if (auto* letter = std::get_if<PeerLetter>(&message)) {
    if (const auto from = peers_in_.find(stream); from != peers_in_.end()) {
      const BucketId bucket = letter->message.bucket;
      const ConfigurationVersion version = letter->message.configuration_version;
      const bool tells_what_is_committed =
          version >= versions_[bucket] && version <= world_.served[bucket];
      if (tells_what_is_committed && Follows(core_->Roles()[bucket])) {
        window_.Hear(bucket, Now());
      }
      core_->OnPeerMessage(from->second, std::move(letter->message));
    }
  } else if (const auto* peer = std::get_if<PeerHello>(&message)) {
    OnPeerHello(stream, *peer);
  } else if (std::holds_alternative<PeerHelloReply>(message)) {
    peers_->OnHelloReply(stream);
  } else if (const auto* hello = std::get_if<ExchangeHello>(&message)) {
    OnHello(stream, *hello);
  } else if (const auto* get = std::get_if<GetRecord>(&message)) {
    OnGet(stream, *get);
  } else if (const auto* put = std::get_if<PutRecord>(&message)) {
    OnPut(stream, *put);
  } else if (const auto client = clients_.find(stream); client != clients_.end()) {
    if (auto* push = std::get_if<std::shared_ptr<PushFrame>>(&message)) {
      (*push)->Copy();  // the sender may end while it waits, and it is looked at with the answer
    }
    if (client->second.busy) {
      client->second.waiting.push_back(std::move(message));
    } else {
      OnRequest(stream, client->second, message);
    }
  }
  Observe();
}

void ParameterServerProcess::OnServiceEnded(StreamId stream, StreamKind kind) {
  clients_.erase(stream);
  peers_in_.erase(stream);
  if (kind == StreamKind::kReplication && peers_.has_value()) {
    peers_->OnEnded(stream);
  }
}

void ParameterServerProcess::OnPeerHello(StreamId stream, const PeerHello& hello) {
  if (hello.to != core_->self()) {
    return world_.network.Close(stream, *this);
  }
  peers_in_[stream] = hello.from;
  Send(stream, PeerHelloReply{});
}

void ParameterServerProcess::HearServed() {
  const std::vector<parameter_server::Replica::Role> roles = core_->Roles();
  for (const parameter_server::BucketReport& report : core_->Reports()) {
    if (roles[report.bucket] == parameter_server::Replica::Role::kServing) {
      window_.Hear(report.bucket, Now());
      ConfigurationVersion& served = world_.served[report.bucket];
      served = std::max(served, report.configuration_version);
    }
  }
}

void ParameterServerProcess::OnHello(StreamId stream, const ExchangeHello& hello) {
  std::optional<WorkerId> writer = hello.writer;
  if (writer.has_value() && world_.Has(Mutation::kNoFencing)) {
    writer->incarnation = 1;
  }
  if (writer.has_value() && (hello.attempt != attempt() || !core_->Admit(*writer).ok())) {
    Send(stream, ExchangeHelloReply{.refused = true});
    return world_.network.Close(stream, *this);
  }
  clients_[stream] = {.writer = writer, .busy = false, .waiting = {}};
  Send(stream, ExchangeHelloReply{});
}

void ParameterServerProcess::OnRequest(StreamId stream, Client& client, const Message& message) {
  if (const auto* push = std::get_if<std::shared_ptr<PushFrame>>(&message)) {
    if (client.writer.has_value()) {
      OnPush(stream, client, *push);
    }
  } else if (const auto* fetch = std::get_if<worker::FetchMessage>(&message)) {
    OnFetch(stream, client, *fetch);
  } else if (const auto* flush = std::get_if<worker::FlushMessage>(&message)) {
    OnFlush(stream, client, *flush);
  }
}

void ParameterServerProcess::OnPush(StreamId stream,
                                    Client& client,
                                    const std::shared_ptr<PushFrame>& frame) {
  parameter_server::Push push = ToParameterServer(*client.writer, *frame);
  if (world_.Has(Mutation::kNoDeduplication)) {
    Relabel(push);
  }
  client.busy = true;
  if (world_.Has(Mutation::kOldPushGetsIn)) {
    world_.before.pushes[start().id.slot].push_back(
        {.attempt = attempt(), .push = push, .frame = frame});
  }
  const bool given_up = push.writer.incarnation < writers_from_[push.writer.slot];
  core_->Submit(push,
                [this, stream, frame, given_up, writer = push.writer](
                    const std::vector<parameter_server::ShardAck>& acks) {
                  if (given_up) {
                    world_.updates.Refused(writer, acks);
                  }
                  OnPushed(stream, frame, writer, acks);
                });
}

void ParameterServerProcess::OnPushed(StreamId stream,
                                      const std::shared_ptr<PushFrame>& frame,
                                      const WorkerId& writer,
                                      const std::vector<parameter_server::ShardAck>& acks) {
  world_.updates.Acknowledged(writer, *frame, acks);
  if (std::ranges::any_of(acks, [this](const parameter_server::ShardAck& ack) {
        return ack.outcome == parameter_server::PushOutcome::kApplied &&
               world_.job.IsPrimary(core_->self(), core_->layout().shards()[ack.shard].bucket);
      })) {
    world_.job.Applied(writer.slot, writer.incarnation);
  }
  Send(stream, ToWorker(frame->header.request, acks));
  // Not inside the core, from where this may be called.
  After(microseconds(1), [this, stream] {
    const auto client = clients_.find(stream);
    if (client == clients_.end() || !open_) {
      return;
    }
    client->second.busy = false;
    while (!client->second.busy && !client->second.waiting.empty()) {
      const Message next = std::move(client->second.waiting.front());
      client->second.waiting.pop_front();
      OnRequest(stream, client->second, next);
    }
  });
}

// Whatever comes is the next one.
void ParameterServerProcess::Relabel(parameter_server::Push& push) {
  for (parameter_server::ShardUpdate& update : push.updates) {
    update.sequence = static_cast<std::uint64_t>(Now().time_since_epoch().count()) + ++relabelled_;
    update.after_loss = true;
  }
}

void ParameterServerProcess::OnFetch(StreamId stream,
                                     const Client& client,
                                     const worker::FetchMessage& fetch) {
  const WorkerId* const asking = client.writer.has_value() ? &*client.writer : nullptr;
  const auto values = core_->Fetch(asking, fetch.shards, fetch.snapshot);
  if (!values.ok()) {
    return world_.network.Close(stream, *this);
  }
  for (const parameter_server::ShardValue& value : *values) {
    if (value.outcome != parameter_server::FetchOutcome::kFound) {
      world_.scheduler.Record(life->name,
                              "cannot serve a fetch: outcome " +
                                  std::to_string(static_cast<int>(value.outcome)) +
                                  " for shard, snapshot",
                              value.shard,
                              fetch.snapshot);
    } else if (fetch.snapshot == 0) {
      world_.updates.Read(value.shard, value.values);
    }
  }
  Send(stream, FetchAnswer{.reply = ToWorker(fetch.request, *values), .values = *values});
}

void ParameterServerProcess::OnFlush(StreamId stream,
                                     const Client& client,
                                     const worker::FlushMessage& flush) {
  if (!client.writer.has_value()) {
    return;
  }
  const auto persisted = core_->RequestFlush(*client.writer, flush.shards);
  worker::FlushReply reply{.request = flush.request, .persisted = {}};
  for (std::size_t i = 0; i < persisted.size(); ++i) {
    reply.persisted.push_back({.shard = flush.shards[i], .sequence = persisted[i]});
  }
  Send(stream, FlushAnswer{std::move(reply)});
}

void ParameterServerProcess::OnGet(StreamId stream, const GetRecord& get) {
  parameter_server::RecordAnswer answer = core_->GetRecord(get.key);
  if (answer.access != Access::kReady) {
    return Send(stream, RecordAnswer{});
  }
  if (const auto stayed = world_.before.ledgers.find(get.key);
      world_.Has(Mutation::kLedgerStays) && attempt() > 1 &&
      stayed != world_.before.ledgers.end()) {
    answer.record.value = stayed->second;
    answer.record.version = std::max<std::uint64_t>(answer.record.version, 1);
  }
  if (answer.record.version > 0 &&
      world_.job.IsPrimary(core_->self(), BucketOfRecord(get.key, core_->layout().buckets()))) {
    SeeLedger(get.key, answer.record.version, answer.record.value);
  }
  Send(stream,
       RecordAnswer{.outcome = RecordAnswer::Outcome::kDone,
                    .version = answer.record.version,
                    .value = std::move(answer.record.value)});
}

// Who was replaced while it stood still may answer when its successor has stored the next value.
bool ParameterServerProcess::IsOvertaken(const std::string& key, std::uint64_t version) const {
  const BucketId bucket = BucketOfRecord(key, core_->layout().buckets());
  return !world_.job.IsPrimary(core_->self(), bucket) &&
         world_.work.ledger_version(PartOf(key)) >= version;
}

void ParameterServerProcess::SeeLedger(const std::string& key,
                                       std::uint64_t version,
                                       const std::string& value) {
  world_.work.LedgerStored(PartOf(key), version, value);
}

void ParameterServerProcess::OnPut(StreamId stream, const PutRecord& put) {
  if (world_.Has(Mutation::kLedgerNotStored) && world_.scheduler.Chance(0.1) &&
      core_->GetRecord(put.key).access == Access::kReady) {
    return Send(
        stream,
        RecordAnswer{.outcome = RecordAnswer::Outcome::kDone, .version = put.expected_version + 1});
  }
  const absl::Status status = core_->PutRecord(
      put.key,
      put.expected_version,
      put.value,
      [this, stream, put](const parameter_server::RecordAnswer& answer) {
        if (answer.access != Access::kReady) {
          return Send(stream, RecordAnswer{});
        }
        if (answer.stored && !IsOvertaken(put.key, answer.record.version)) {
          SeeLedger(put.key, answer.record.version, put.value);
          world_.before.ledgers[put.key] = put.value;
        }
        Send(stream,
             RecordAnswer{.outcome = answer.stored ? RecordAnswer::Outcome::kDone
                                                   : RecordAnswer::Outcome::kConflict,
                          .version = answer.record.version});
      });
  if (!status.ok()) {
    world_.violations.Report("a record is refused: " + std::string(status.message()));
  }
}

// --- The disk

void ParameterServerProcess::PlanStorage(Clock::TimePoint time) {
  if (storage_failed_ || !open_ || (storage_at_.has_value() && *storage_at_ <= time)) {
    return;
  }
  storage_at_ = std::max(time, Now());
  if (Now() < disk_.slow_until) {
    *storage_at_ += world_.scheduler.Random(milliseconds(1), Disk::kSlow);
  }
  world_.scheduler.At(*storage_at_, life, [this, at = *storage_at_] {
    if (storage_at_ == at) {
      DoStorage();
    }
  });
}

void ParameterServerProcess::DoStorage() {
  storage_at_.reset();
  if (storage_failed_ || !open_) {
    return;
  }
  if (const absl::Status status = DoDue(); !status.ok()) {
    storage_failed_ = true;
    return Fail(status);
  }
  Observe();
  PlanStorageBy(core_->StorageDueAt());
  if (!world_.Has(Mutation::kNeverFlushes)) {
    PlanStorageBy(core_->flusher().DueAt());
  }
}

void ParameterServerProcess::PlanStorageBy(Clock::TimePoint local) {
  if (local != Clock::TimePoint::max()) {
    PlanStorage(clock_.ToWorld(local));
  }
}

absl::Status ParameterServerProcess::DoDue() {
  if (!read_) {
    const absl::Status status = core_->ReadStored();
    if (absl::IsResourceExhausted(status)) {
      PlanStorage(Now() + kDiskRetry);
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(status);
    read_ = true;
    TellStored();
  }
  ADAMANT_RETURN_IF_ERROR(core_->DoStorage());
  for (const controller::TakeSnapshot& take : std::exchange(snapshots_, {})) {
    ADAMANT_RETURN_IF_ERROR(TakeSnapshot(take));
  }
  return core_->flusher().DueAt() <= clock_.Now() ? Flush() : absl::OkStatus();
}

void ParameterServerProcess::TellStored() { Tell(core_->Stored()); }

absl::Status ParameterServerProcess::TakeSnapshot(const controller::TakeSnapshot& take) {
  const auto taken = core_->TakeSnapshot({.snapshot = take.snapshot,
                                          .keep_from = take.keep_from,
                                          .keep = take.keep,
                                          .generations = take.generations});
  if (absl::IsDataLoss(taken.status())) {
    return taken.status();
  }
  controller::SnapshotTaken answer{.snapshot = take.snapshot,
                                   .ok = taken.ok(),
                                   .error = std::string(taken.status().message()),
                                   .buckets = {},
                                   .disk_full = absl::IsResourceExhausted(taken.status())};
  for (std::size_t i = 0; taken.ok() && i < taken->size(); ++i) {
    answer.buckets.push_back((*taken)[i]);
    ADAMANT_RETURN_IF_ERROR(ShowStored(take.snapshot, (*taken)[i].bucket));
  }
  Tell(std::move(answer));
  return absl::OkStatus();
}

absl::Status ParameterServerProcess::ShowStored(std::uint64_t snapshot, BucketId bucket) {
  for (const Shard& shard : core_->layout().shards()) {
    if (shard.bucket == bucket) {
      ADAMANT_ASSIGN_OR_RETURN(const std::vector<float> values,
                               disk_.ReadSnapshot(job_uid_, snapshot, shard));
      world_.updates.SnapshotStored(snapshot, start().id.slot, shard.id, values);
    }
  }
  return absl::OkStatus();
}

absl::Status ParameterServerProcess::Flush() {
  if (world_.Has(Mutation::kNeverFlushes)) {
    return absl::OkStatus();
  }
  const std::uint64_t before = core_->flusher().totals().flushes;
  ADAMANT_RETURN_IF_ERROR(core_->Flush());
  if (core_->flusher().totals().flushes > before) {
    world_.scheduler.Record(life->name, "has flushed");
  }
  return absl::OkStatus();
}

// Shows the checker what this process begins to serve with, when it came from a disk.
void ParameterServerProcess::Observe() {
  for (const parameter_server::BucketReport& report : core_->Reports()) {
    const auto observed = observed_.find(report.bucket);
    if (report.lost || (observed != observed_.end() && observed->second == report.generation)) {
      continue;
    }
    const std::vector<ShardId> shards = ShardsOf(report.bucket);
    const auto found = core_->Fetch(nullptr, shards, 0);
    if (!found.ok() ||
        std::ranges::any_of(*found, [](const auto& each) { return each.values.empty(); })) {
      continue;  // its lease has passed, so that nobody else can read it either: later
    }
    observed_[report.bucket] = report.generation;
    if (!world_.updates.Restored(report.bucket, report.generation)) {
      continue;
    }
    world_.scheduler.Record(life->name, "serves what was stored of bucket", report.bucket);
    if (world_.Has(Mutation::kOldPushGetsIn)) {
      PushAgain();
    }
    for (std::size_t i = 0; i < shards.size(); ++i) {
      world_.updates.Loaded(start().id.slot, shards[i], found->at(i).values);
    }
  }
}

std::vector<ShardId> ParameterServerProcess::ShardsOf(BucketId bucket) const {
  std::vector<ShardId> shards;
  for (const Shard& shard : core_->layout().shards()) {
    if (shard.bucket == bucket) {
      shards.push_back(shard.id);
    }
  }
  return shards;
}

// What came before the job went back: of that, all behind what it went back to would be next.
void ParameterServerProcess::PushAgain() {
  After(milliseconds(1), [this] {
    for (const Before::OldPush& old : world_.before.pushes[start().id.slot]) {
      if (old.attempt < attempt()) {
        core_->Submit(old.push, [this, old](const std::vector<parameter_server::ShardAck>& acks) {
          world_.updates.Acknowledged(old.push.writer, *old.frame, acks);
        });
      }
    }
  });
}

// --- The end

void ParameterServerProcess::Stop() {
  open_ = false;
  if (!storage_failed_ && core_.has_value()) {
    const absl::Status status = Flush();
    storage_failed_ = !status.ok();
  }
  Leave();
}

void ParameterServerProcess::OnKilled(Death death) {
  if (!has_disk_) {
    return;
  }
  const std::size_t survivors = world_.scheduler.rng().Below(disk_.store().unflushed() + 1);
  death == Death::kPowerLost || world_.Has(Mutation::kLyingDisk)
      ? disk_.store().LosePower(survivors)
      : disk_.store().Crash(survivors);
  disk_.locked = false;
  const std::vector<parameter_server::Replica::Role> roles = core_->Roles();
  for (BucketId bucket = 0; bucket < roles.size(); ++bucket) {
    if (roles[bucket] >= parameter_server::Replica::Role::kSecondary &&
        roles[bucket] != parameter_server::Replica::Role::kLoading && IsKnown(bucket)) {
      world_.updates.Ended(start().id.slot,
                           bucket,
                           window_.At(bucket, Death::kKilled, Now()),
                           window_.At(bucket, Death::kPowerLost, Now()));
    }
  }
  if (death == Death::kPowerLost) {
    world_.updates.PowerLost(start().id.slot);
  }
  OrphanBuckets();
}

// It may die in the very step in which it begins to serve what its disk had: nobody has seen that,
// and what it may lack is what it lacked before.
bool ParameterServerProcess::IsKnown(BucketId bucket) const {
  return core_->Roles()[bucket] < parameter_server::Replica::Role::kLoading ||
         observed_.contains(bucket) || window_.HasHeard(bucket);
}

void ParameterServerProcess::Pauses(Clock::Duration time) {
  Hindered(time);
  if (core_.has_value()) {
    OrphanBuckets();
  }
}

void ParameterServerProcess::OrphanBuckets() {
  const std::vector<parameter_server::Replica::Role> roles = core_->Roles();
  for (BucketId bucket = 0; bucket < roles.size(); ++bucket) {
    if (roles[bucket] > parameter_server::Replica::Role::kLoading) {
      world_.updates.Orphaned(bucket);
    }
  }
}

}  // namespace adamant::simulation
