#include "services/parameter_server/core/buckets/bucket_table.h"

#include <utility>

#include "services/common/base/check.h"

namespace adamant::parameter_server {

BucketTable::BucketTable(const ShardCatalog& catalog,
                         const Replica::Options& options,
                         ReplicaHost& host,
                         Driver& driver)
    : catalog_(catalog), driver_(driver), shards_(catalog.layout().shards().size()) {
  for (BucketId id = 0; id < catalog.layout().buckets(); ++id) {
    buckets_.push_back(std::make_unique<Bucket>(std::make_unique<Replica>(id, options, host),
                                                catalog.ShardsOf(id).size()));
  }
}

DeferredWork BucketTable::TakeDeferred() {
  const MutexLock lock(mutex_);
  return std::exchange(deferred_, {});
}

bool BucketTable::Lives(BucketId bucket, std::uint64_t life) const {
  const MutexLock lock(mutex_);
  return buckets_[bucket]->life() == life;
}

std::optional<Bucket::Content> BucketTable::ReadableContent(BucketId id,
                                                            Clock::TimePoint now) const {
  const MutexLock lock(mutex_);
  const Bucket& bucket = *buckets_[id];
  return bucket.replica().CanRead(now) ? std::optional(bucket.content()) : std::nullopt;
}

// --- Session

BucketTable::Session::Session(BucketTable& table, Applying applying)
    : table_(table), applying_(applying) {
  table_.mutex_.Lock();
  table_.session_ = this;
}

BucketTable::Session::~Session() {
  if (!table_.deferred_.empty() && applying_ == Applying::kElsewhere) {
    table_.driver_.WantApply();
  }
  table_.session_ = nullptr;
  table_.mutex_.Unlock();
  for (const DueAck& each : acks_) {
    ShardAck ack = each.answer.ack;
    if (each.persisted_in != nullptr) {
      ack.persisted = each.persisted_in->PersistedOf(each.writer);
    }
    each.answer.push->Settle(each.answer.index, ack);
  }
  for (const DueRecord& each : records_) {
    each.done(each.answer);
  }
}

Bucket& BucketTable::Session::bucket(BucketId id) {
  AssertHeld();
  return *table_.buckets_[id];
}

std::span<const std::unique_ptr<Bucket>> BucketTable::Session::buckets() {
  AssertHeld();
  return table_.buckets_;
}

void BucketTable::Session::Fill(BucketId id, Bucket::Content content) {
  const std::vector<ShardId>& shards = table_.catalog_.ShardsOf(id);
  for (std::size_t i = 0; i < content.shards.size(); ++i) {
    table_.shards_.Set(shards[i], content.shards[i]);
  }
  bucket(id).Fill(std::move(content));
}

void BucketTable::Session::Clear(BucketId id) {
  for (const ShardId shard : table_.catalog_.ShardsOf(id)) {
    table_.shards_.Set(shard, nullptr);
  }
  bucket(id).Clear();
}

void BucketTable::Session::Settle(const Waiting::Answer& answer, PushOutcome outcome) {
  acks_.push_back({.answer = answer});
  acks_.back().answer.ack.outcome = outcome;
}

void BucketTable::Session::Settle(const Waiting::Answer& answer,
                                  const LiveShardPtr& shard,
                                  const WorkerId& writer) {
  acks_.push_back({.answer = answer, .persisted_in = shard, .writer = writer});
}

void BucketTable::Session::Answer(RecordDone done, const RecordAnswer& answer) {
  records_.push_back({std::move(done), answer});
}

void BucketTable::Session::Apply(const LiveShardPtr& shard) {
  AssertHeld();
  table_.deferred_.shards.push_back(shard);
}

void BucketTable::Session::SendPart(const DuePart& part) {
  AssertHeld();
  table_.deferred_.parts.push_back(part);
}

void BucketTable::Session::FlushSoon() {
  AssertHeld();
  table_.deferred_.flush = true;
}

void BucketTable::Session::Send(const ServerId& to, PeerMessage message) {
  table_.driver_.SendToPeer(to, std::move(message));
}

void BucketTable::Session::Propose(const Proposal& proposal) { table_.driver_.Propose(proposal); }

void BucketTable::Session::Report(const BucketReport& report) { table_.driver_.Report(report); }

void BucketTable::Session::AssertHolds(const BucketTable& table) const {
  ADAMANT_CHECK(&table == &table_, "the session is of this table");
}

// --- View

const Bucket& BucketTable::View::bucket(BucketId id) const {
  AssertHeld();
  return *table_.buckets_[id];
}

std::span<const std::unique_ptr<Bucket>> BucketTable::View::buckets() const {
  AssertHeld();
  return table_.buckets_;
}

}  // namespace adamant::parameter_server
