#include "services/parameter_server/core/serving/parameter_server.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/serving/session.h"

// Configurations, peers, and reading.
namespace adamant::parameter_server {
namespace {

// Records are few and must not roll back with the shards, so they are logged wherever there is a
// disk.
Replica::Logging LoggingOf(PersistenceMode mode) {
  switch (mode) {
    case PersistenceMode::kDelayed:
      return Replica::Logging::kRecords;
    case PersistenceMode::kWal:
    case PersistenceMode::kWalSync:
      return Replica::Logging::kAll;
    case PersistenceMode::kNone:
      break;
  }
  return Replica::Logging::kNothing;
}

}  // namespace

ParameterServer::ParameterServer(ServerOptions options,
                                 storage::KvStore& store,
                                 const Clock& clock,
                                 Driver& driver)
    : options_(std::move(options)),
      store_(store),
      clock_(clock),
      driver_(driver),
      dirty_(options_.flush, clock, [&driver] { driver.WantStorage(); }),
      catalog_({.job_uid = options_.job_uid,
                .seed = options_.seed,
                .parameters = options_.parameters,
                .buckets = options_.buckets,
                .optimisers = options_.optimisers,
                .durable_at_once = IsDurableAtOnce(options_.mode)},
               dirty_),
      logged_until_(layout().buckets(), 0),
      erased_until_(layout().buckets(), 0),
      scrub_at_(clock.Now() + options_.scrub.pause),
      shard_table_(layout().shards().size()),
      snapshots_(options_.job_uid, store),
      flusher_(shard_table_, dirty_, store, clock) {
  ReplicaHost& host = *this;
  for (BucketId id = 0; id < layout().buckets(); ++id) {
    auto replica = std::make_unique<Replica>(id,
                                             Replica::Options{.self = options_.self,
                                                              .times = options_.times,
                                                              .min_in_sync = options_.min_in_sync,
                                                              .logging = LoggingOf(options_.mode)},
                                             host);
    buckets_.push_back(std::make_unique<Bucket>(std::move(replica), catalog_.ShardsOf(id).size()));
  }
}

ParameterServer::~ParameterServer() = default;

ParameterServer::Session::~Session() {
  const std::vector<Due> due = std::exchange(server_.due_, {});
  const std::vector<DueRecord> records = std::exchange(server_.due_records_, {});
  const bool apply = !server_.to_apply_.empty() || !server_.to_send_.empty();
  if (apply && apply_ == Apply::kElsewhere) {
    server_.driver_.WantApply();
  }
  server_.mutex_.Unlock();
  for (const Due& each : due) {
    ShardAck ack = each.ack;
    if (each.persisted_in != nullptr) {
      ack.persisted = each.persisted_in->PersistedOf(each.writer);
    }
    each.push->Settle(each.index, ack);
  }
  for (const DueRecord& each : records) {
    each.done(each.answer);
  }
}

// --- The controller

void ParameterServer::SetConfigurations(std::span<const Configuration> buckets,
                                        const std::vector<Holder>& dead) {
  Session session(*this);
  const Clock::TimePoint now = clock_.Now();
  const std::size_t known = std::min(buckets.size(), buckets_.size());
  for (BucketId id = 0; id < known; ++id) {
    buckets_[id]->replica().OnConfiguration(buckets[id], now);
    buckets_[id]->replica().OnDead(dead, now);
  }
}

std::vector<BucketReport> ParameterServer::Reports() {
  Session session(*this);
  std::vector<BucketReport> reports;
  for (BucketId id = 0; id < buckets_.size(); ++id) {
    const Replica::Role role = buckets_[id]->replica().role();
    if (role == Replica::Role::kServing || role == Replica::Role::kDraining) {
      reports.push_back(ServingReport(id));
    }
  }
  for (const auto& [bucket, report] : lost_) {
    if (report.epoch == buckets_[bucket]->replica().configuration().epoch) {
      reports.push_back(report);
    }
  }
  return reports;
}

std::vector<BucketProgress> ParameterServer::Progress() {
  Session session(*this);
  std::vector<BucketProgress> progress;
  for (BucketId id = 0; id < buckets_.size(); ++id) {
    const Bucket& bucket = *buckets_[id];
    if (bucket.replica().IsPrimary()) {
      const ReplicaStatus status = bucket.replica().status();
      progress.push_back({.bucket = id,
                          .epoch = status.epoch,
                          .committed = status.committed,
                          .lag = status.prepared - status.slowest,
                          .updates = bucket.content().updates,
                          .serving = bucket.replica().role() == Replica::Role::kServing});
    }
  }
  return progress;
}

std::vector<Replica::Role> ParameterServer::Roles() const {
  const MutexLock lock(mutex_);
  std::vector<Replica::Role> roles;
  for (const auto& bucket : buckets_) {
    roles.push_back(bucket->replica().role());
  }
  return roles;
}

// --- Peers

void ParameterServer::OnPeerConnected(const Holder& peer) {
  Session session(*this);
  for (BucketId id = 0; id < buckets_.size(); ++id) {
    buckets_[id]->replica().OnConnected(peer, clock_.Now());
    AskForCopyAgain(id, peer);
  }
}

void ParameterServer::OnPeerMessage(const Holder& from, PeerMessage message) {
  if (message.bucket >= layout().buckets()) {
    return;
  }
  // What takes time is done before the lock is taken.
  LiveShardPtr shard;
  SequenceTable sequences;
  if (const auto* part = std::get_if<CopyPart>(&message.kind)) {
    if (const auto* copied = std::get_if<CopiedShard>(&part->content)) {
      if (copied->shard >= layout().shards().size()) {
        return;
      }
      auto content = DecodeContent(catalog_.IdentityOf(copied->shard), *copied->stored);
      if (!content.ok()) {
        return;  // damaged on its way: the copy will be made anew
      }
      sequences = content->sequences;
      shard = catalog_.Make(copied->shard, *std::move(content));
    }
  }
  const bool bulk = message.bulk();
  bool hurry = false;
  {
    Session session(*this, bulk ? Session::Apply::kHere : Session::Apply::kElsewhere);
    Bucket& bucket = *buckets_[message.bucket];
    bucket.replica().OnMessage(from, message, clock_.Now());
    bucket.RaiseDurable(bucket.replica().durable());
    const bool current = message.epoch == bucket.replica().configuration().epoch;
    if (std::holds_alternative<CopyPart>(message.kind) && current) {
      OnCopyPart(from, message, std::move(shard), std::move(sequences));
    } else if (const auto* ack = std::get_if<CopyAck>(&message.kind); ack != nullptr && current) {
      OnCopyAck(from, message.bucket, *ack);
    } else if (const auto* beacon = std::get_if<Beacon>(&message.kind)) {
      hurry = beacon->flush;
    }
  }
  if (bulk || hurry) {
    ApplyCommitted();
  }
  if (hurry) {
    dirty_.Hurry();
  }
}

void ParameterServer::Tick() {
  Session session(*this);
  const Clock::TimePoint now = clock_.Now();
  for (const auto& bucket : buckets_) {
    bucket->replica().Tick(now);
    bucket->RaiseDurable(bucket->replica().durable());
  }
  if (now >= next_install_report_) {
    next_install_report_ = now + options_.times.beacon;
    ReportInstalling();
  }
  if (now >= read_until_) {
    read_.clear();
  }
}

void ParameterServer::ApplyCommitted() {
  while (true) {
    std::vector<LiveShardPtr> shards;
    std::deque<PartDue> parts;
    {
      const MutexLock lock(mutex_);
      shards.swap(to_apply_);
      parts.swap(to_send_);
    }
    if (shards.empty() && parts.empty()) {
      return;
    }
    for (const LiveShardPtr& shard : shards) {
      shard->ApplyIfFree();
    }
    for (const PartDue& part : parts) {
      SendPart(part);
    }
  }
}

// --- Reading

Access ParameterServer::AccessOf(const Bucket& bucket) const {
  switch (bucket.replica().role()) {
    case Replica::Role::kLoading:
    case Replica::Role::kReconciling:
    case Replica::Role::kServing:
      return bucket.replica().CanRead(clock_.Now()) ? Access::kReady : Access::kNotReady;
    default:
      return Access::kNotPrimary;
  }
}

absl::StatusOr<std::vector<ShardValue>> ParameterServer::Fetch(const Writer* asking,
                                                               std::span<const ShardId> shards,
                                                               std::uint64_t snapshot) {
  std::vector<ShardValue> values;
  for (const ShardId id : shards) {
    if (id >= layout().shards().size()) {
      return absl::InvalidArgumentError("shard " + std::to_string(id) +
                                        " is asked for, the model has " +
                                        std::to_string(layout().shards().size()));
    }
    Access access = Access::kNotReady;
    Epoch epoch = 0;
    LiveShardPtr shard;
    {
      const MutexLock lock(mutex_);
      const Bucket& bucket = *buckets_[catalog_.BucketOf(id)];
      access = AccessOf(bucket);
      epoch = bucket.replica().configuration().epoch;
      shard = access == Access::kReady ? bucket.content().shards[catalog_.PositionOf(id)] : nullptr;
    }
    ShardValue value{.shard = id,
                     .outcome = access == Access::kNotPrimary ? FetchOutcome::kNotPrimary
                                                              : FetchOutcome::kNotReady};
    if (access == Access::kReady && snapshot == 0) {
      ADAMANT_FAILPOINT("server/read");
      value = shard->Read(asking);
    } else if (access == Access::kReady) {
      ADAMANT_ASSIGN_OR_RETURN(value, ReadSnapshot(asking, snapshot, shard->identity()));
    }
    value.epoch = epoch;
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<std::uint64_t> ParameterServer::RequestFlush(const Writer& writer,
                                                         std::span<const ShardId> shards) {
  dirty_.Hurry();
  std::vector<std::uint64_t> persisted;
  for (const ShardId id : shards) {
    LiveShardPtr shard;
    if (id < layout().shards().size()) {
      const MutexLock lock(mutex_);
      Bucket& bucket = *buckets_[catalog_.BucketOf(id)];
      if (!IsDurableAtOnce(options_.mode)) {
        bucket.replica().RequestFlush(clock_.Now());
      }
      shard = AccessOf(bucket) == Access::kReady ? bucket.content().shards[catalog_.PositionOf(id)]
                                                 : nullptr;
    }
    persisted.push_back(shard == nullptr ? 0 : shard->PersistedOf(writer));
  }
  return persisted;
}

RecordAnswer ParameterServer::GetRecord(std::string_view key) {
  const MutexLock lock(mutex_);
  const Bucket& bucket = *buckets_[BucketOfRecord(key, layout().buckets())];
  RecordAnswer answer{.access = AccessOf(bucket)};
  if (answer.access == Access::kReady) {
    ADAMANT_FAILPOINT("record/read");
    const auto record = bucket.content().records.find(key);
    answer.record = record == bucket.content().records.end() ? Record{} : record->second;
  }
  return answer;
}

}  // namespace adamant::parameter_server
