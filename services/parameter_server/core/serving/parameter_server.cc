#include "services/parameter_server/core/serving/parameter_server.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace adamant::parameter_server {
namespace {

using Session = BucketTable::Session;

// Records are few and must not be rolled back with the shards, so they are logged wherever there is
// a disk.
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

ShardCatalog::Options CatalogOptions(const ParameterServerOptions& options) {
  return {.job_uid = options.job_uid,
          .seed = options.seed,
          .parameters = options.parameters,
          .buckets = options.buckets,
          .optimisers = options.optimisers,
          .durable_at_once = IsDurableAtOnce(options.mode)};
}

Replica::Options ReplicaOptions(const ParameterServerOptions& options) {
  return {.self = options.self,
          .times = options.times,
          .min_in_sync = options.min_in_sync,
          .logging = LoggingOf(options.mode)};
}

}  // namespace

ParameterServer::ParameterServer(ParameterServerOptions options,
                                 storage::KvStore& store,
                                 const Clock& clock,
                                 Driver& driver)
    : options_(std::move(options)),
      clock_(clock),
      dirty_(options_.flush, clock, [&driver] { driver.WantStorage(); }),
      catalog_(CatalogOptions(options_), dirty_),
      queue_(clock, driver),
      bucket_store_(options_.mode, catalog_, store),
      stored_(
          {options_.self, options_.damage, options_.folder}, bucket_store_, store, queue_, clock),
      snapshots_(options_.job_uid, store),
      copies_(table_, queue_, stored_, clock, options_),
      effects_(table_, queue_, stored_, copies_, options_.mode),
      table_(catalog_, ReplicaOptions(options_), effects_, driver),
      flusher_(table_.shards(), dirty_, store, clock),
      applier_(table_, copies_, dirty_),
      pushes_(table_, applier_, clock, options_.writers),
      records_(table_, clock),
      reader_(table_, snapshots_, queue_, dirty_, clock),
      write_back_(table_, queue_, dirty_, bucket_store_, flusher_),
      snapshot_taker_(table_, snapshots_, clock),
      scrubber_({options_.scrub, clock}, table_, bucket_store_, snapshots_, queue_, dirty_),
      loader_(table_, bucket_store_, snapshots_, stored_, copies_, clock),
      storage_worker_(table_, queue_, bucket_store_, loader_, scrubber_, clock) {}

// --- The controller

void ParameterServer::SetConfigurations(std::span<const Configuration> buckets,
                                        const std::vector<ServerId>& dead) {
  Session session(table_);
  const Clock::TimePoint now = clock_.Now();
  const std::size_t known = std::min(buckets.size(), session.buckets().size());
  for (BucketId id = 0; id < known; ++id) {
    Replica& replica = session.bucket(id).replica();
    replica.OnConfiguration(buckets[id], now);
    replica.OnDead(dead, now);
  }
}

std::vector<BucketReport> ParameterServer::Reports() {
  Session session(table_);
  std::vector<BucketReport> reports;
  for (BucketId id = 0; id < session.buckets().size(); ++id) {
    const Bucket& bucket = session.bucket(id);
    const Replica::Role role = bucket.replica().role();
    if (role == Replica::Role::kServing || role == Replica::Role::kDraining) {
      reports.push_back(bucket.ServingReport(id));
    }
  }
  for (const auto& bucket : session.buckets()) {
    if (bucket->lost &&
        bucket->lost->configuration_version == bucket->replica().configuration().version) {
      reports.push_back(*bucket->lost);
    }
  }
  return reports;
}

std::vector<BucketProgress> ParameterServer::Progress() {
  Session session(table_);
  std::vector<BucketProgress> progress;
  for (BucketId id = 0; id < session.buckets().size(); ++id) {
    const Bucket& bucket = session.bucket(id);
    if (bucket.replica().IsPrimary()) {
      const ReplicaStatus status = bucket.replica().status();
      progress.push_back({.bucket = id,
                          .configuration_version = status.configuration_version,
                          .committed = status.committed,
                          .lag = status.prepared - status.slowest,
                          .updates = bucket.content().updates,
                          .serving = bucket.replica().role() == Replica::Role::kServing});
    }
  }
  return progress;
}

std::vector<Replica::Role> ParameterServer::Roles() const {
  const BucketTable::View view(table_);
  std::vector<Replica::Role> roles;
  for (const auto& bucket : view.buckets()) {
    roles.push_back(bucket->replica().role());
  }
  return roles;
}

// --- Peers

void ParameterServer::OnPeerConnected(const ServerId& peer) {
  Session session(table_);
  for (BucketId id = 0; id < session.buckets().size(); ++id) {
    session.bucket(id).replica().OnConnected(peer, clock_.Now());
    copies_.AskAgain(session, id, peer);
  }
}

void ParameterServer::OnPeerMessage(const ServerId& from, PeerMessage message) {
  if (message.bucket >= layout().buckets()) {
    return;
  }
  // What takes time is done before the lock is taken.
  CopyTransfer::ReceivedPart part;
  if (const auto* sent = std::get_if<CopyPart>(&message.kind)) {
    auto received = copies_.Decode(*sent);
    if (!received.ok()) {
      return;  // damaged on its way: the copy will be made anew
    }
    part = *std::move(received);
  }
  const bool bulk = message.bulk();
  bool hurry = false;
  {
    Session session(table_, bulk ? Session::Applying::kHere : Session::Applying::kElsewhere);
    Bucket& bucket = session.bucket(message.bucket);
    bucket.replica().OnMessage(from, message, clock_.Now());
    bucket.RaiseDurable(bucket.replica().durable());
    const bool current = message.configuration_version == bucket.replica().configuration().version;
    if (std::holds_alternative<CopyPart>(message.kind) && current) {
      copies_.OnPart(session, from, message, std::move(part));
    } else if (const auto* ack = std::get_if<CopyAck>(&message.kind); ack != nullptr && current) {
      copies_.OnAck(session, from, message.bucket, *ack);
    } else if (const auto* beacon = std::get_if<Beacon>(&message.kind)) {
      hurry = beacon->flush;
    }
  }
  if (bulk || hurry) {
    applier_.Run();
  }
  if (hurry) {
    dirty_.Hurry();
  }
}

void ParameterServer::Tick() {
  Session session(table_);
  const Clock::TimePoint now = clock_.Now();
  for (const auto& bucket : session.buckets()) {
    bucket->replica().Tick(now);
    bucket->RaiseDurable(bucket->replica().durable());
  }
  copies_.Tick(session);
  stored_.DropOld();
}

void ParameterServer::ApplyCommitted() { applier_.Run(); }

// --- Training traffic

absl::Status ParameterServer::Admit(const WorkerId& writer) { return pushes_.Admit(writer); }

void ParameterServer::RefuseWritersBelow(std::span<const Incarnation> incarnations) {
  pushes_.RefuseWritersBelow(incarnations);
}

void ParameterServer::Submit(const Push& push, PushDone done) {
  pushes_.Submit(push, std::move(done));
}

absl::StatusOr<std::vector<ShardValue>> ParameterServer::Fetch(
    const WorkerId* asking,
    std::span<const ShardId> shards,
    std::uint64_t snapshot,
    std::span<const std::uint64_t> copies) {
  return copies.empty() ? reader_.Fetch(asking, shards, snapshot)
                        : reader_.FetchCopies(shards, snapshot, copies);
}

std::vector<PersistedShard> ParameterServer::RequestFlush(const WorkerId& writer,
                                                          std::span<const ShardId> shards) {
  return reader_.RequestFlush(writer, shards);
}

// --- The disk

absl::Status ParameterServer::ReadStored(const ParallelFor& parallel_for) {
  return stored_.Read(parallel_for);
}

StoredBuckets ParameterServer::Stored() { return stored_.Get(); }

absl::Status ParameterServer::DoStorage() { return storage_worker_.Run(); }

Clock::TimePoint ParameterServer::StorageDueAt() const { return queue_.DueAt(); }

absl::Status ParameterServer::Flush() { return write_back_.Flush(); }

void ParameterServer::Scrub() { scrubber_.Scrub(); }

absl::StatusOr<std::vector<SnapshotBucket>> ParameterServer::TakeSnapshot(
    const protocol::TakeSnapshot& request) {
  return snapshot_taker_.Take(request);
}

std::string ParameterServer::alarm() const {
  const std::string alarm = flusher_.alarm();
  return alarm.empty() ? queue_.alarm() : alarm;
}

}  // namespace adamant::parameter_server
