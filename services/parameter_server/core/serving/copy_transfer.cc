#include "services/parameter_server/core/serving/copy_transfer.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {

CopyTransfer::CopyTransfer(BucketTable& table,
                           StorageQueue& queue,
                           StoredState& stored,
                           const Clock& clock,
                           const ParameterServerOptions& options)
    : table_(table),
      queue_(queue),
      stored_(stored),
      clock_(clock),
      mode_(options.mode),
      report_interval_(options.times.beacon) {}

// --- The primary

void CopyTransfer::Start(BucketTable::Session& session,
                         BucketId id,
                         const ServerId& learner,
                         std::uint64_t copy,
                         Lsn base) {
  Bucket& bucket = session.bucket(id);
  std::vector<std::string> keys;
  for (const auto& [key, record] : bucket.content().records) {
    keys.push_back(key);
  }
  const auto shards = static_cast<std::uint32_t>(bucket.content().shards.size());
  bucket.sending.emplace(learner, copy, shards, std::move(keys));
  session.Send(learner,
               {.bucket = id,
                .configuration_version = bucket.replica().configuration().version,
                .kind = CopyBegin{.copy = copy,
                                  .base = base,
                                  .base_origin = bucket.replica().log().committed_origin(),
                                  .generation = bucket.content().generation,
                                  .parts = bucket.sending->parts()}});
  PlanParts(session, id);
}

void CopyTransfer::PlanParts(BucketTable::Session& session, BucketId id) {
  std::optional<CopySender>& sending = session.bucket(id).sending;
  std::uint32_t index = 0;
  while (sending.has_value() && sending->TakeNext(index)) {
    session.SendPart({.bucket = id, .copy = sending->copy(), .index = index});
  }
}

// A shard holds at least what was committed when the copy began: that was queued before, and is
// applied before it is encoded.
void CopyTransfer::Send(const DuePart& part) {
  LiveShardPtr shard;
  CopyPart message{.copy = part.copy, .index = part.index, .content = CopiedShard{}};
  {
    BucketTable::Session session(table_);
    Bucket& bucket = session.bucket(part.bucket);
    if (!bucket.sending.has_value() || bucket.sending->copy() != part.copy) {
      return;
    }
    if (bucket.sending->IsShard(part.index)) {
      shard = bucket.content().shards[part.index];
    } else {
      const std::string& key = bucket.sending->KeyOf(part.index);
      const Record& record = bucket.content().records.at(key);
      message.content = CopiedRecord{.key = key, .version = record.version, .value = record.value};
    }
  }
  if (shard != nullptr) {
    auto stored = std::make_shared<std::string>(shard->Encode());
    SealShard(*stored);
    message.content = CopiedShard{.shard = shard->identity().shard, .stored = std::move(stored)};
  }
  BucketTable::Session session(table_, BucketTable::Session::Applying::kHere);
  const Bucket& bucket = session.bucket(part.bucket);
  if (bucket.sending.has_value() && bucket.sending->copy() == part.copy) {
    ADAMANT_FAILPOINT("copy/send_part");
    session.Send(bucket.sending->learner(),
                 {.bucket = part.bucket,
                  .configuration_version = bucket.replica().configuration().version,
                  .kind = std::move(message)});
  }
}

void CopyTransfer::OnAck(BucketTable::Session& session,
                         const ServerId& from,
                         BucketId id,
                         const CopyAck& ack) {
  Bucket& bucket = session.bucket(id);
  if (!bucket.sending.has_value() || bucket.sending->copy() != ack.copy ||
      bucket.sending->learner() != from) {
    return;
  }
  if (ack.index == kCopyAgain) {
    return bucket.replica().OnConnected(from, clock_.Now());
  }
  if (bucket.sending->Acknowledged(ack.index)) {
    bucket.replica().Copied(ack.copy, clock_.Now());
  }
  PlanParts(session, id);
}

// --- The learner

void CopyTransfer::Learn(BucketTable::Session& session, BucketId id, const CopyBegin& begin) {
  const std::size_t shards = table_.catalog().ShardsOf(id).size();
  if (begin.parts < shards || begin.parts > shards + CopyReceiver::kMaxRecords) {
    return;
  }
  Bucket& bucket = session.bucket(id);
  bucket.receiving.emplace(begin.copy, begin.generation, begin.parts, shards);
  stored_.Forget(id);
  stored_.Drop(id);
  if (mode_ != PersistenceMode::kNone) {
    queue_.Unmark(id);
  }
  if (bucket.receiving->Complete()) {
    FinishReceiving(session, id);
  }
}

absl::StatusOr<CopyTransfer::ReceivedPart> CopyTransfer::Decode(const CopyPart& part) const {
  const auto* copied = std::get_if<CopiedShard>(&part.content);
  if (copied == nullptr) {
    return ReceivedPart{};
  }
  const ShardCatalog& catalog = table_.catalog();
  if (copied->shard >= catalog.layout().shards().size()) {
    return absl::InvalidArgumentError("shard " + std::to_string(copied->shard) +
                                      " is outside the model");
  }
  ADAMANT_ASSIGN_OR_RETURN(ShardContent content,
                           DecodeContent(catalog.IdentityOf(copied->shard), *copied->stored));
  SequenceTable sequences = content.sequences;
  return ReceivedPart{.shard = catalog.Make(copied->shard, std::move(content)),
                      .sequences = std::move(sequences)};
}

void CopyTransfer::OnPart(BucketTable::Session& session,
                          const ServerId& from,
                          const PeerMessage& message,
                          ReceivedPart received) {
  const auto& part = std::get<CopyPart>(message.kind);
  const ShardCatalog& catalog = table_.catalog();
  Bucket& bucket = session.bucket(message.bucket);
  if (!bucket.receiving.has_value() || bucket.receiving->copy() != part.copy ||
      bucket.replica().configuration().primary != from) {
    return;
  }
  ADAMANT_FAILPOINT("copy/take_part");
  bool added = false;
  if (received.shard == nullptr) {
    const auto& record = std::get<CopiedRecord>(part.content);
    added = bucket.receiving->Add(part.index, record);
  } else if (const ShardId shard = received.shard->identity().shard;
             catalog.BucketOf(shard) == message.bucket) {
    added = bucket.receiving->Add(part.index,
                                  catalog.PositionOf(shard),
                                  std::move(received.shard),
                                  std::move(received.sequences));
  }
  if (added && bucket.receiving->Complete()) {
    return FinishReceiving(session, message.bucket);
  }
  session.Send(from,
               {.bucket = message.bucket,
                .configuration_version = message.configuration_version,
                .kind = CopyAck{.copy = part.copy, .index = part.index}});
}

// A copy counts when it is on disk: then each replica's disk holds all but the last unflushed
// updates.
void CopyTransfer::FinishReceiving(BucketTable::Session& session, BucketId id) {
  Bucket& bucket = session.bucket(id);
  ADAMANT_FAILPOINT("copy/install");
  CopyReceiver received = *std::exchange(bucket.receiving, std::nullopt);
  Bucket::Content content{.shards = std::move(received.shards),
                          .sequences = std::move(received.sequences),
                          .records = std::move(received.records),
                          .generation = received.generation()};
  for (const LiveShardPtr& shard : content.shards) {
    content.updates += shard->version();
  }
  session.Fill(id, std::move(content));
  bucket.installing = {.copy = received.copy(), .last_index = received.last_index()};
  if (mode_ == PersistenceMode::kNone) {
    return Installed(session, id);
  }
  queue_.Install(id, bucket.life());
}

void CopyTransfer::Installed(BucketTable::Session& session, BucketId id) {
  Bucket& bucket = session.bucket(id);
  const std::optional<Installing> installing = std::exchange(bucket.installing, std::nullopt);
  if (!installing.has_value()) {
    return;
  }
  const Configuration& configuration = bucket.replica().configuration();
  ADAMANT_FAILPOINT("copy/installed");
  bucket.replica().Installed(installing->copy);
  session.Send(configuration.primary,
               {.bucket = id,
                .configuration_version = configuration.version,
                .kind = CopyAck{.copy = installing->copy, .index = installing->last_index}});
}

void CopyTransfer::AskAgain(BucketTable::Session& session, BucketId id, const ServerId& primary) {
  const Replica& replica = session.bucket(id).replica();
  if (replica.role() == Replica::Role::kLearner && replica.configuration().primary == primary) {
    session.Send(primary,
                 {.bucket = id,
                  .configuration_version = replica.configuration().version,
                  .kind = CopyAck{.copy = replica.copy(), .index = kCopyAgain}});
  }
}

// The primary hears that the learner is still at it.
void CopyTransfer::Tick(BucketTable::Session& session) {
  session.AssertHolds(table_);
  const Clock::TimePoint now = clock_.Now();
  if (now < next_report_) {
    return;
  }
  next_report_ = now + report_interval_;
  for (BucketId id = 0; id < session.buckets().size(); ++id) {
    const Bucket& bucket = session.bucket(id);
    if (bucket.installing.has_value()) {
      const Configuration& configuration = bucket.replica().configuration();
      session.Send(configuration.primary,
                   {.bucket = id,
                    .configuration_version = configuration.version,
                    .kind = CopyAck{.copy = bucket.installing->copy, .index = kNoPart}});
    }
  }
}

}  // namespace adamant::parameter_server
