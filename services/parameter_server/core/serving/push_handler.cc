#include "services/parameter_server/core/serving/push_handler.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "services/common/optimiser/rules.h"
#include "services/parameter_server/core/updates/operands.h"

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

PushHandler::PushHandler(BucketTable& table,
                         Applier& applier,
                         const Clock& clock,
                         std::uint32_t writers)
    : table_(table), applier_(applier), clock_(clock), writers_(writers) {}

absl::Status PushHandler::Admit(const WorkerId& writer) {
  if (writer.slot >= writers_) {
    return absl::InvalidArgumentError("worker slot " + std::to_string(writer.slot) +
                                      " is outside the job, which has " + std::to_string(writers_));
  }
  const BucketTable::View view(table_);
  Incarnation& newest = newest_[writer.slot];
  if (writer.incarnation < newest) {
    return absl::FailedPreconditionError("worker slot " + std::to_string(writer.slot) +
                                         " is at incarnation " + std::to_string(newest) +
                                         "; this is " + std::to_string(writer.incarnation) +
                                         ", which has been given up");
  }
  newest = writer.incarnation;
  return absl::OkStatus();
}

void PushHandler::RefuseWritersBelow(std::span<const Incarnation> incarnations) {
  const BucketTable::View view(table_);
  const auto slots = std::min<std::size_t>(incarnations.size(), writers_);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    newest_[slot] = std::max(newest_[slot], incarnations[slot]);
  }
}

bool PushHandler::WellFormed(const Push& push, const ShardUpdate& update) const {
  if (update.shard >= table_.catalog().layout().shards().size() || update.sequence == 0) {
    return false;
  }
  const Shard& shard = table_.catalog().layout().shards()[update.shard];
  const bool on_server =
      table_.catalog().OptimiserOf(update.shard).location == OptimiserLocation::kServer;
  if ((update.kind == UpdateKind::kWeightChange) == on_server) {
    return false;
  }
  if (update.kind == UpdateKind::kOuterProduct) {
    return update.operands < push.operands.size() &&
           push.operands[update.operands].tensor == shard.tensor && update.values.empty();
  }
  return update.values.size() == shard.size();
}

bool PushHandler::WellFormed(const Push& push) const {
  for (const Operands& operands : push.operands) {
    const bool fits = FitsTensor(table_.catalog().layout(), operands) &&
                      HasSize(operands.activations, operands.rows, operands.inputs) &&
                      HasSize(operands.errors, operands.rows, operands.outputs);
    if (!fits) {
      return false;
    }
  }
  return push.terms.correction.IsValid() &&
         std::ranges::all_of(push.updates,
                             [&](const ShardUpdate& update) { return WellFormed(push, update); });
}

void PushHandler::Submit(const Push& push, PushDone done) {
  if (push.writer.slot >= writers_ || !WellFormed(push)) {
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
        applied_ += static_cast<std::uint64_t>(
            std::ranges::count(acks, PushOutcome::kApplied, &ShardAck::outcome));
        done(std::move(acks));
      });
  {
    BucketTable::Session session(table_, BucketTable::Session::Applying::kHere);
    Append(session, push, state);
  }
  applier_.Run();
}

void PushHandler::Append(BucketTable::Session& session,
                         const Push& push,
                         const PushStatePtr& state) {
  const auto newest = newest_.find(push.writer.slot);
  const bool stale = newest != newest_.end() && push.writer.incarnation < newest->second;
  std::vector<std::shared_ptr<const SharedOperands>> operands;
  for (const Operands& each : push.operands) {
    operands.push_back(std::make_shared<const SharedOperands>(SharedOperands{each, push.owner}));
  }
  Appended appended;
  for (std::size_t i = 0; i < push.updates.size(); ++i) {
    const ShardUpdate& update = push.updates[i];
    const Waiting::Answer asking{.push = state, .index = i, .ack = {.shard = update.shard}};
    if (stale) {
      session.Settle(asking, PushOutcome::kStaleIncarnation);
      continue;
    }
    LoggedUpdate logged{.shard = update.shard,
                        .writer = push.writer,
                        .sequence = update.sequence,
                        .after_loss = update.after_loss,
                        .kind = update.kind,
                        .job_examples = push.terms.job_examples,
                        .examples = push.terms.examples,
                        .correction = push.terms.correction,
                        .values = update.values,
                        .fetched_version = update.fetched_version};
    if (update.kind == UpdateKind::kOuterProduct) {
      logged.operands = operands[update.operands];
    }
    Judge(session, logged, update.configuration_version, asking, appended);
  }
  for (auto& [id, next] : appended) {
    auto& [entry, waiting] = next;
    Bucket& bucket = session.bucket(id);
    Replica& replica = bucket.replica();
    entry.owner = push.owner;
    bucket.waiting[replica.log().prepared() + 1] = std::move(waiting);
    replica.Append(std::move(entry), clock_.Now());
  }
}

void PushHandler::Judge(BucketTable::Session& session,
                        const LoggedUpdate& update,
                        std::uint64_t map_version,
                        const Waiting::Answer& asking,
                        Appended& appended) const {
  const BucketId id = table_.catalog().BucketOf(update.shard);
  Bucket& bucket = session.bucket(id);
  const Replica& replica = bucket.replica();
  Waiting::Answer answer = asking;
  answer.ack.configuration_version = replica.configuration().version;
  const Replica::Role role = replica.role();
  if (role < Replica::Role::kLoading || role == Replica::Role::kDraining) {
    return session.Settle(answer, PushOutcome::kNotPrimary);
  }
  // A worker with a newer map must wait until it is known here.
  if (!replica.CanAppend() || map_version > replica.configuration().version) {
    return session.Settle(answer, PushOutcome::kNotReady);
  }
  const std::uint32_t position = table_.catalog().PositionOf(update.shard);
  const SequenceTable::Verdict verdict = bucket.Admit(position, update);
  answer.ack.expected = bucket.LastOf(position, update.writer) + 1;
  if (verdict == SequenceTable::Verdict::kNext) {
    auto& [entry, waiting] = appended[id];
    entry.bytes += update.values.size_bytes();
    if (update.operands != nullptr) {
      const Operands& operands = update.operands->operands;
      entry.bytes += operands.activations.size_bytes() + operands.errors.size_bytes();
    }
    entry.updates.push_back(update);
    waiting.updates.push_back(std::move(answer));
  } else if (verdict == SequenceTable::Verdict::kDuplicate && !replica.log().entries().empty()) {
    // Perhaps of what is not committed yet.
    bucket.waiting[replica.log().prepared()].duplicates.push_back(std::move(answer));
  } else {
    answer.ack.outcome = OutcomeOf(verdict);
    session.Settle(answer, bucket.content().shards[position], update.writer);
  }
}

}  // namespace adamant::parameter_server
