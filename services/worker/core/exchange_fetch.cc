// The fetching side of Exchange: values for training, for renewal and for evaluation.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/worker/core/exchange.h"
#include "services/worker/core/local_update.h"

namespace adamant::worker {

absl::Status Exchange::OnFetchReply(const FetchReply& reply,
                                    const ReadValues& read,
                                    Clock::TimePoint now) {
  ADAMANT_ASSIGN_OR_RETURN(const FetchProgress progress, fetches_.OnReply(reply, now));
  if (progress.fresh.empty()) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(ReadShards(reply, progress, read));
  if (!progress.complete) {
    return absl::OkStatus();
  }
  ++statistics_.fetches;
  ring_ = true;
  if (progress.fetch == snapshot_fetch_) {
    fetches_.Drop(std::exchange(snapshot_fetch_, 0));
    replica_.evaluation.SetLoaded(snapshot_);
    return absl::OkStatus();
  }
  ADAMANT_FAILPOINT("fetch/complete");
  MarkIncluded();
  asynchrony_.OnFetched(replica_.fetch.values(), now);
  weight_growth_.Observe(replica_.fetch.values());
  replica_.guidance.Set(asynchrony_.guidance());
  fetch_complete_ = true;
  replica_.fetched.store(fetch_, std::memory_order_release);
  if (!renewing_) {
    replica_.fetch.Complete();
  }
  return absl::OkStatus();
}

absl::Status Exchange::ReadShards(const FetchReply& reply,
                                  const FetchProgress& progress,
                                  const ReadValues& read) {
  const bool for_evaluation = progress.fetch == snapshot_fetch_;
  const std::span<float> values =
      for_evaluation ? replica_.evaluation.writable() : replica_.fetch.values();
  auto fresh = progress.fresh.begin();
  for (std::size_t i = 0; fresh != progress.fresh.end(); ++i) {
    const FetchedShard& fetched = reply.shards[i];
    if (fetched.outcome != FetchOutcome::kFound) {
      continue;
    }
    const Shard& shard = replica_.layout.shards()[fetched.shard];
    if (i != *fresh) {
      if (unwanted_.span().size() < shard.size()) {
        unwanted_ = FloatBuffer(shard.size());
      }
      ADAMANT_RETURN_IF_ERROR(read(unwanted_.span().first(shard.size())));
      continue;
    }
    ++fresh;
    const std::uint64_t begin = replica_.layout.OffsetOf(shard.tensor) + shard.begin;
    ADAMANT_RETURN_IF_ERROR(read(values.subspan(begin, shard.size())));
    if (!for_evaluation) {
      pushes_.OnValue(reply.request, fetched);
      asynchrony_.meter().OnValue(fetched);
      FoldRetained(fetched);
    }
  }
  return absl::OkStatus();
}

void Exchange::AddToFetched(ShardId id, const Accumulator& accumulator) {
  const Shard& shard = replica_.layout.shards()[id];
  const TensorPlan& tensor = replica_.plan.tensors[shard.tensor];
  const std::uint64_t end = tensor.offset + shard.end;
  for (std::uint64_t begin = tensor.offset + shard.begin; begin < end;
       begin += UpdatePlan::kBlock) {
    const std::uint64_t size = std::min(UpdatePlan::kBlock, end - begin);
    AddLocalChange(
        tensor, accumulator, begin, scratch_.span(), replica_.fetch.values().subspan(begin, size));
  }
}

// A value that was fetched and waits to be applied may lack this push, whose accumulator goes.
void Exchange::FoldIntoFetch(Sequence sequence, const Accumulator& accumulator) {
  if (fetch_ == 0) {
    return;
  }
  for (const PushedShard& pushed : replica_.plan.pushed) {
    if (fetches_.Received(fetch_, pushed.shard) &&
        !fetches_.Includes(fetch_, pushed.shard, sequence)) {
      AddToFetched(pushed.shard, accumulator);
    }
  }
}

// A value from a server that was rolled back lacks pushes that had ended.
void Exchange::FoldRetained(const FetchedShard& fetched) {
  const Shard& shard = replica_.layout.shards()[fetched.shard];
  if (!replica_.plan.tensors[shard.tensor].trained) {
    return;
  }
  const PushStore::Contents& retained = store_.retained();
  for (auto push = retained.upper_bound(fetched.included_sequence); push != retained.end();
       ++push) {
    if (!push->second->refused) {
      AddToFetched(fetched.shard, *push->second->parts.front().accumulator);
    }
  }
}

void Exchange::StartFetch(Clock::TimePoint now) {
  if (renewing_) {
    return;  // the threads are about to get the values of now
  }
  if (fetch_ != 0) {
    FinishFetch();
  }
  fetch_ = fetches_.Fetch(0);
  PollServers(now);
}

// What was fetched has been applied.
void Exchange::FinishFetch() {
  ADAMANT_FAILPOINT("fetch/applied");
  pushes_.SetFetchedVersions(fetches_.Versions(fetch_));
  asynchrony_.meter().OnApplied();
  fetches_.Drop(std::exchange(fetch_, 0));
  fetch_complete_ = false;
}

void Exchange::MarkIncluded() {
  for (const auto& [sequence, content] : store_.in_flight()) {
    Accumulator& sum = *content->parts.front().accumulator;
    for (const PushedShard& pushed : replica_.plan.pushed) {
      sum.included[pushed.shard] =
          fetches_.Includes(fetch_, pushed.shard, sequence) ? std::uint8_t{1} : std::uint8_t{0};
    }
  }
}

void Exchange::StartRenewal() {
  renewing_ = true;
  reset_answers_ = 0;
  replica_.commands.reset_wanted.fetch_add(1, std::memory_order_release);
  ring_ = true;
}

// All threads wait, and what they had handed over has been taken.
void Exchange::FinishRenewal() {
  if (reset_answers_ < replica_.ports.size()) {
    return;
  }
  std::vector<Accumulator*> live;
  for (const auto& [sequence, content] : store_.in_flight()) {
    live.push_back(content->parts.front().accumulator);
  }
  // What was looked ahead goes with the weights of before.
  std::ranges::fill(replica_.look_ahead.ahead, 0.0f);
  replica_.look_ahead = {.ahead = replica_.look_ahead.ahead};
  asynchrony_.OnRenewed();
  ApplyFetched(replica_.plan,
               replica_.layout,
               live,
               {.fetched = replica_.fetch.values(),
                .weights = replica_.weights.span(),
                .scratch = scratch_.span()},
               replica_.look_ahead);
  FinishFetch();
  renewing_ = false;
  replica_.fetch_turn.store(replica_.fetch_points.load(), std::memory_order_release);
  replica_.commands.renewed.store(replica_.commands.reset_wanted.load(), std::memory_order_release);
  ring_ = true;
}

// --- Evaluation

void Exchange::WantSnapshot(std::uint64_t epoch, std::uint64_t snapshot) {
  // Ids rise: batches that name an older one are of an evaluation that was given up.
  if (snapshot < newest_snapshot_) {
    return;
  }
  newest_snapshot_ = snapshot;
  snapshot_epoch_ = epoch;
  replica_.evaluation.SetNewest(snapshot);
  ring_ = true;
  if (epoch < begun_epoch_) {
    EndEvaluation();
  } else if (snapshot != snapshot_) {
    wanted_snapshot_ = snapshot;
  }
}

// The evaluation may have been begun anew under another snapshot, by another controller, and this
// worker dealt nothing of it: nobody keeps the one that its batches name.
void Exchange::OnEpochBegun(std::uint64_t epoch) {
  begun_epoch_ = std::max(begun_epoch_, epoch);
  if (newest_snapshot_ != 0 && snapshot_epoch_ < begun_epoch_) {
    EndEvaluation();
  }
}

void Exchange::EndEvaluation() {
  replica_.evaluation.SetNewest(newest_snapshot_ + 1);  // which the next one may be
  wanted_snapshot_ = 0;
  fetches_.Drop(std::exchange(snapshot_fetch_, 0));
  ring_ = true;
}

void Exchange::AdvanceEvaluation(Clock::TimePoint now) {
  if (wanted_snapshot_ == 0 || !replica_.evaluation.Clear()) {
    return;
  }
  fetches_.Drop(snapshot_fetch_);
  snapshot_ = std::exchange(wanted_snapshot_, 0);
  snapshot_fetch_ = fetches_.Fetch(snapshot_);
  PollServers(now);
}

}  // namespace adamant::worker
