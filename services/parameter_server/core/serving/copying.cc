#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "services/common/base/failpoint.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/core/serving/session.h"

// Copies of buckets on their way from primaries to learners.
namespace adamant::parameter_server {

// --- The primary

void ParameterServer::StartCopy(BucketId id, const Holder& learner, std::uint64_t copy, Lsn base) {
  Bucket& bucket = *buckets_[id];
  std::vector<std::string> keys;
  for (const auto& [key, record] : bucket.content().records) {
    keys.push_back(key);
  }
  const auto shards = static_cast<std::uint32_t>(bucket.content().shards.size());
  bucket.sending.emplace(learner, copy, shards, std::move(keys));
  Send(learner,
       {.bucket = id,
        .epoch = bucket.replica().configuration().epoch,
        .kind = CopyBegin{.copy = copy,
                          .base = base,
                          .generation = bucket.content().generation,
                          .parts = bucket.sending->parts()}});
  PlanParts(id);
}

void ParameterServer::StopCopy(BucketId id) { buckets_[id]->sending.reset(); }

void ParameterServer::PlanParts(BucketId id) {
  std::optional<CopySender>& sending = buckets_[id]->sending;
  std::uint32_t index = 0;
  while (sending.has_value() && sending->TakeNext(index)) {
    to_send_.push_back({.bucket = id, .copy = sending->copy(), .index = index});
  }
}

// A shard holds at least what was committed when the copy began: that was queued before, and is
// applied before it is encoded.
void ParameterServer::SendPart(const PartDue& part) {
  LiveShardPtr shard;
  CopyPart message{.copy = part.copy, .index = part.index, .content = CopiedShard{}};
  {
    Session session(*this);
    Bucket& bucket = *buckets_[part.bucket];
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
  const MutexLock lock(mutex_);
  const Bucket& bucket = *buckets_[part.bucket];
  if (bucket.sending.has_value() && bucket.sending->copy() == part.copy) {
    ADAMANT_FAILPOINT("copy/send_part");
    Send(bucket.sending->learner(),
         {.bucket = part.bucket,
          .epoch = bucket.replica().configuration().epoch,
          .kind = std::move(message)});
  }
}

void ParameterServer::OnCopyAck(const Holder& from, BucketId id, const CopyAck& ack) {
  Bucket& bucket = *buckets_[id];
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
  PlanParts(id);
}

// --- The learner

void ParameterServer::Learn(BucketId id, const CopyBegin& begin) {
  const std::size_t shards = catalog_.ShardsOf(id).size();
  if (begin.parts < shards || begin.parts > shards + CopyReceiver::kMaxRecords) {
    return;
  }
  Bucket& bucket = *buckets_[id];
  bucket.receiving.emplace(begin.copy, begin.generation, begin.parts, shards);
  ForgetStored(id);
  read_.erase(id);
  if (options_.mode != PersistenceMode::kNone) {
    tasks_.unmarked.insert(id);
    driver_.WantStorage();
  }
  if (bucket.receiving->Complete()) {
    FinishReceiving(id);
  }
}

void ParameterServer::OnCopyPart(const Holder& from,
                                 const PeerMessage& message,
                                 LiveShardPtr shard,
                                 SequenceTable sequences) {
  const auto& part = std::get<CopyPart>(message.kind);
  Bucket& bucket = *buckets_[message.bucket];
  if (!bucket.receiving.has_value() || bucket.receiving->copy() != part.copy ||
      bucket.replica().configuration().primary != from) {
    return;
  }
  ADAMANT_FAILPOINT("copy/take_part");
  bool added = false;
  if (shard == nullptr) {
    const auto& record = std::get<CopiedRecord>(part.content);
    added = bucket.receiving->Add(part.index, record);
  } else if (catalog_.BucketOf(shard->identity().shard) == message.bucket) {
    const std::uint32_t position = catalog_.PositionOf(shard->identity().shard);
    added = bucket.receiving->Add(part.index, position, std::move(shard), std::move(sequences));
  }
  if (added && bucket.receiving->Complete()) {
    return FinishReceiving(message.bucket);
  }
  Send(from,
       {.bucket = message.bucket,
        .epoch = message.epoch,
        .kind = CopyAck{.copy = part.copy, .index = part.index}});
}

// A copy counts when it is on disk: then each member's disk holds all but the last unflushed
// updates.
void ParameterServer::FinishReceiving(BucketId id) {
  Bucket& bucket = *buckets_[id];
  ADAMANT_FAILPOINT("copy/install");
  CopyReceiver received = *std::exchange(bucket.receiving, std::nullopt);
  Bucket::Content content{.shards = std::move(received.shards),
                          .sequences = std::move(received.sequences),
                          .records = std::move(received.records),
                          .generation = received.generation()};
  for (const LiveShardPtr& shard : content.shards) {
    content.updates += shard->version();
  }
  SetContent(id, std::move(content));
  installing_[id] = {.copy = received.copy(), .last_index = received.last_index()};
  if (options_.mode == PersistenceMode::kNone) {
    return Installed(id);
  }
  tasks_.installs[id] = bucket.life();
  driver_.WantStorage();
}

void ParameterServer::Installed(BucketId id) {
  Bucket& bucket = *buckets_[id];
  const auto installing = installing_.extract(id);
  if (installing.empty()) {
    return;
  }
  const Configuration& configuration = bucket.replica().configuration();
  ADAMANT_FAILPOINT("copy/installed");
  bucket.replica().Installed(installing.mapped().copy, clock_.Now());
  Send(
      configuration.primary,
      {.bucket = id,
       .epoch = configuration.epoch,
       .kind = CopyAck{.copy = installing.mapped().copy, .index = installing.mapped().last_index}});
}

void ParameterServer::AskForCopyAgain(BucketId id, const Holder& primary) {
  const Replica& replica = buckets_[id]->replica();
  if (replica.role() == Replica::Role::kLearner && replica.configuration().primary == primary) {
    Send(primary,
         {.bucket = id,
          .epoch = replica.configuration().epoch,
          .kind = CopyAck{.copy = replica.copy(), .index = kCopyAgain}});
  }
}

// The primary hears that the learner is still at it.
void ParameterServer::ReportInstalling() {
  for (const auto& [id, installing] : installing_) {
    const Configuration& configuration = buckets_[id]->replica().configuration();
    Send(configuration.primary,
         {.bucket = id,
          .epoch = configuration.epoch,
          .kind = CopyAck{.copy = installing.copy, .index = kNoPart}});
  }
}

}  // namespace adamant::parameter_server
