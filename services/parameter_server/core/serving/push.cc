#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "services/common/optimiser/rules.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/core/serving/session.h"

// What is checked before an update or a record may be appended to its bucket's log, and how it gets
// there.
namespace adamant::parameter_server {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

bool AllFinite(const Push& push) {
  const bool dense = std::ranges::all_of(push.updates, [](const ShardUpdate& update) {
    return MaxMagnitude(update.values) <= kLargest;
  });
  return dense && std::ranges::all_of(push.operands, [](const Operands& operands) {
           return IsProductFinite(
               MaxMagnitude(operands.activations), MaxMagnitude(operands.errors), operands.rows);
         });
}

std::vector<ShardAck> RefuseWhole(const Push& push, PushOutcome outcome) {
  std::vector<ShardAck> acks;
  for (const ShardUpdate& update : push.updates) {
    acks.push_back({.shard = update.shard, .outcome = outcome});
  }
  return acks;
}

bool HasSize(std::span<const float> values, std::uint32_t rows, std::uint32_t columns) {
  return values.size() == std::uint64_t{rows} * columns;
}

PushOutcome OutcomeOf(SequenceTable::Verdict verdict) {
  switch (verdict) {
    case SequenceTable::Verdict::kNext:
      return PushOutcome::kApplied;
    case SequenceTable::Verdict::kDuplicate:
      return PushOutcome::kDuplicate;
    case SequenceTable::Verdict::kUnexpected:
      return PushOutcome::kUnexpectedSequence;
    case SequenceTable::Verdict::kStale:
      return PushOutcome::kStaleIncarnation;
  }
  return PushOutcome::kMalformed;
}

}  // namespace

absl::Status ParameterServer::Admit(const Writer& writer) {
  if (writer.slot >= options_.writers) {
    return absl::InvalidArgumentError("worker slot " + std::to_string(writer.slot) +
                                      " is outside the job, which has " +
                                      std::to_string(options_.writers));
  }
  const MutexLock lock(mutex_);
  std::uint64_t& newest = newest_[writer.slot];
  if (writer.incarnation < newest) {
    return absl::FailedPreconditionError("worker slot " + std::to_string(writer.slot) +
                                         " is at incarnation " + std::to_string(newest) +
                                         "; this is " + std::to_string(writer.incarnation) +
                                         ", which has been given up");
  }
  newest = writer.incarnation;
  return absl::OkStatus();
}

void ParameterServer::RefuseWritersBelow(std::span<const std::uint64_t> incarnations) {
  const MutexLock lock(mutex_);
  const auto slots = std::min<std::size_t>(incarnations.size(), options_.writers);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    newest_[slot] = std::max(newest_[slot], incarnations[slot]);
  }
}

bool ParameterServer::WellFormed(const Push& push, const ShardUpdate& update) const {
  if (update.shard >= layout().shards().size() || update.sequence == 0) {
    return false;
  }
  const Shard& shard = layout().shards()[update.shard];
  const bool on_server = catalog_.OptimiserOf(update.shard).location == OptimiserLocation::kServer;
  if ((update.kind == UpdateKind::kWeightChange) == on_server) {
    return false;
  }
  if (update.kind == UpdateKind::kOuterProduct) {
    return update.operands < push.operands.size() &&
           push.operands[update.operands].tensor == shard.tensor && update.values.empty();
  }
  return update.values.size() == shard.size();
}

bool ParameterServer::WellFormed(const Push& push) const {
  const auto& parameters = layout().parameters();
  for (const Operands& operands : push.operands) {
    const bool fits =
        operands.rows > 0 && operands.tensor < parameters.size() &&
        parameters[operands.tensor].shape == Shape{operands.outputs, operands.inputs} &&
        HasSize(operands.activations, operands.rows, operands.inputs) &&
        HasSize(operands.errors, operands.rows, operands.outputs);
    if (!fits) {
      return false;
    }
  }
  return push.correction.IsValid() &&
         std::ranges::all_of(push.updates,
                             [&](const ShardUpdate& update) { return WellFormed(push, update); });
}

void ParameterServer::Submit(const Push& push, PushDone done) {
  if (push.writer.slot >= options_.writers || !WellFormed(push)) {
    return done(RefuseWhole(push, PushOutcome::kMalformed));
  }
  if (push.updates.empty()) {
    return done({});
  }
  if (!AllFinite(push)) {
    return done(RefuseWhole(push, PushOutcome::kNotFinite));
  }
  const auto state = std::make_shared<PushState>(
      push.updates.size(), [this, done = std::move(done)](std::vector<ShardAck> acks) {
        updates_applied_ += static_cast<std::uint64_t>(
            std::ranges::count(acks, PushOutcome::kApplied, &ShardAck::outcome));
        done(std::move(acks));
      });
  {
    Session session(*this, Session::Apply::kHere);
    AppendPush(push, state);
  }
  ApplyCommitted();
}

void ParameterServer::Settle(const Waiting::Answer& answer, PushOutcome outcome) {
  ShardAck ack = answer.ack;
  ack.outcome = outcome;
  due_.push_back({.push = answer.push, .index = answer.index, .ack = ack});
}

void ParameterServer::AppendPush(const Push& push, const PushStatePtr& state) {
  const auto newest = newest_.find(push.writer.slot);
  const bool stale = newest != newest_.end() && push.writer.incarnation < newest->second;
  std::vector<std::shared_ptr<const SharedOperands>> operands;
  for (const Operands& each : push.operands) {
    operands.push_back(std::make_shared<const SharedOperands>(SharedOperands{each, push.owner}));
  }
  std::map<BucketId, std::pair<Entry, Waiting>> entries;
  for (std::size_t i = 0; i < push.updates.size(); ++i) {
    const ShardUpdate& update = push.updates[i];
    const Waiting::Answer asking{.push = state, .index = i, .ack = {.shard = update.shard}};
    if (stale) {
      Settle(asking, PushOutcome::kStaleIncarnation);
      continue;
    }
    LoggedUpdate logged{.shard = update.shard,
                        .writer = push.writer,
                        .sequence = update.sequence,
                        .after_loss = update.after_loss,
                        .kind = update.kind,
                        .job_examples = push.job_examples,
                        .examples = push.examples,
                        .correction = push.correction,
                        .values = update.values,
                        .fetched_version = update.fetched_version};
    if (update.kind == UpdateKind::kOuterProduct) {
      logged.operands = operands[update.operands];
    }
    JudgeUpdate(logged, update.bucket_epoch, asking, entries);
  }
  for (auto& [id, appended] : entries) {
    auto& [entry, waiting] = appended;
    Replica& replica = buckets_[id]->replica();
    entry.owner = push.owner;
    buckets_[id]->waiting[replica.prepared() + 1] = std::move(waiting);
    replica.Append(std::move(entry), clock_.Now());
  }
}

void ParameterServer::JudgeUpdate(const LoggedUpdate& update,
                                  std::uint64_t map_epoch,
                                  const Waiting::Answer& asking,
                                  std::map<BucketId, std::pair<Entry, Waiting>>& entries) {
  const BucketId id = catalog_.BucketOf(update.shard);
  Bucket& bucket = *buckets_[id];
  const Replica& replica = bucket.replica();
  Waiting::Answer answer = asking;
  answer.ack.epoch = replica.configuration().epoch;
  const Replica::Role role = replica.role();
  if (role < Replica::Role::kLoading || role == Replica::Role::kDraining) {
    return Settle(answer, PushOutcome::kNotPrimary);
  }
  // A worker with a newer map must wait until it is known here.
  if (!replica.CanAppend() || map_epoch > replica.configuration().epoch) {
    return Settle(answer, PushOutcome::kNotReady);
  }
  const std::uint32_t position = catalog_.PositionOf(update.shard);
  const SequenceTable::Verdict verdict = bucket.Admit(position, update);
  answer.ack.expected = bucket.LastOf(position, update.writer) + 1;
  if (verdict == SequenceTable::Verdict::kNext) {
    auto& [entry, waiting] = entries[id];
    entry.bytes += update.values.size_bytes();
    if (update.operands != nullptr) {
      const Operands& operands = update.operands->operands;
      entry.bytes += operands.activations.size_bytes() + operands.errors.size_bytes();
    }
    entry.updates.push_back(update);
    waiting.updates.push_back(std::move(answer));
  } else if (verdict == SequenceTable::Verdict::kDuplicate && !replica.log().empty()) {
    // Perhaps of what is not committed yet.
    bucket.waiting[replica.prepared()].duplicates.push_back(std::move(answer));
  } else {
    answer.ack.outcome = OutcomeOf(verdict);
    due_.push_back({.push = answer.push,
                    .index = answer.index,
                    .ack = answer.ack,
                    .persisted_in = bucket.content().shards[position],
                    .writer = update.writer});
  }
}

absl::Status ParameterServer::PutRecord(std::string_view key,
                                        std::uint64_t expected,
                                        std::string_view value,
                                        RecordDone done) {
  if (key.empty() || key.size() > kMaxRecordKeyBytes || value.size() > kMaxRecordBytes) {
    return absl::InvalidArgumentError(
        "a record has a key of 1 to 256 bytes and at most 1 MiB; this one has " +
        std::to_string(key.size()) + " and " + std::to_string(value.size()) + " bytes");
  }
  Session session(*this);
  Bucket& bucket = *buckets_[BucketOfRecord(key, layout().buckets())];
  Replica& replica = bucket.replica();
  RecordAnswer answer{.access = AccessOf(bucket)};
  if (answer.access == Access::kReady && !replica.CanAppend()) {
    answer.access = Access::kNotReady;
  }
  if (answer.access == Access::kReady) {
    answer.record.version = bucket.VersionOf(key);
  }
  if (answer.record.version != expected && bucket.IsOpen(key)) {
    answer.access = Access::kNotReady;  // perhaps it is this very put, said again
  }
  if (answer.access != Access::kReady || answer.record.version != expected) {
    due_records_.push_back({std::move(done), answer});
    return absl::OkStatus();
  }
  Entry entry;
  entry.bytes = value.size();
  entry.puts.push_back(
      {.key = std::string(key), .version = expected + 1, .value = std::string(value)});
  bucket.SetVersion(key, expected + 1);
  bucket.waiting[replica.prepared() + 1].puts.push_back(std::move(done));
  replica.Append(std::move(entry), clock_.Now());
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
