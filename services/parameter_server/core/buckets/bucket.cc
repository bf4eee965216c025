#include "services/parameter_server/core/buckets/bucket.h"

#include <utility>

namespace adamant::parameter_server {

Bucket::Bucket(std::unique_ptr<Replica> replica, std::size_t shards)
    : replica_(std::move(replica)), shards_(shards) {
  Clear();
}

void Bucket::Clear() {
  ++life_;
  content_ = {};
  content_.sequences.resize(shards_);
  head_.clear();
  head_versions_.clear();
  waiting.clear();
  sending.reset();
  receiving.reset();
  installing.reset();
  lost.reset();
}

Access Bucket::AccessAt(Clock::TimePoint now) const {
  switch (replica_->role()) {
    case Replica::Role::kLoading:
    case Replica::Role::kReconciling:
    case Replica::Role::kServing:
      return replica_->CanRead(now) ? Access::kReady : Access::kNotReady;
    default:
      return Access::kNotPrimary;
  }
}

BucketReport Bucket::ServingReport(BucketId id) const {
  return {.bucket = id,
          .configuration_version = replica_->configuration().version,
          .failover = replica_->status().failover,
          .generation = content_.generation,
          .updates = content_.updates};
}

void Bucket::Fill(Content content) {
  content_ = std::move(content);
  durable_ = 0;
}

void Bucket::RaiseDurable(Lsn durable) {
  if (durable > durable_) {
    durable_ = durable;
    for (const LiveShardPtr& shard : content_.shards) {
      shard->SetDurable(durable);
    }
  }
}

void Bucket::Commit(std::size_t position, const LoggedUpdate& update) {
  const auto verdict =
      content_.sequences[position].Admit(update.writer, update.sequence, update.after_loss);
  content_.updates += verdict == SequenceTable::Verdict::kNext ? 1 : 0;
}

void Bucket::Commit(const LoggedPut& put) {
  Record& record = content_.records[put.key];
  if (put.version > record.version) {
    record = {.version = put.version, .value = put.value};
  }
  const auto head = head_versions_.find(put.key);
  if (head != head_versions_.end() && head->second <= put.version) {
    head_versions_.erase(head);
  }
}

void Bucket::StartHead(const std::vector<std::uint32_t>& positions) {
  head_ = content_.sequences;
  head_versions_.clear();
  for (const EntryPtr& entry : replica_->log().entries()) {
    for (const LoggedUpdate& update : entry->updates) {
      Admit(positions[update.shard], update);
    }
    for (const LoggedPut& put : entry->puts) {
      SetVersion(put.key, put.version);
    }
  }
}

SequenceTable::Verdict Bucket::Admit(std::size_t position, const LoggedUpdate& update) {
  return head_[position].Admit(update.writer, update.sequence, update.after_loss);
}

std::uint64_t Bucket::LastOf(std::size_t position, const WorkerId& writer) const {
  return head_[position].LastOf(writer);
}

std::uint64_t Bucket::VersionOf(std::string_view key) const {
  if (const auto head = head_versions_.find(key); head != head_versions_.end()) {
    return head->second;
  }
  const auto record = content_.records.find(key);
  return record == content_.records.end() ? 0 : record->second.version;
}

void Bucket::SetVersion(std::string_view key, std::uint64_t version) {
  head_versions_.insert_or_assign(std::string(key), version);
}

}  // namespace adamant::parameter_server
