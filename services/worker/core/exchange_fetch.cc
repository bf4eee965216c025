// The fetching side of Exchange: values for training, for renewal and for evaluation.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/worker/core/exchange.h"
#include "services/worker/core/local_update.h"

namespace adamant::worker {

absl::Status Exchange::OnFetchReply(const FetchReply& reply,
                                    const ReadValues& read,
                                    Clock::TimePoint now) {
  ADAMANT_ASSIGN_OR_RETURN(const FetchProgress progress, pushes_.OnFetchReply(reply, now));
  if (progress.missing && progress.fetch == snapshot_fetch_) {
    snapshot_fetch_ = 0;
    replica_.evaluation.SetMissing(std::exchange(snapshot_, 0));
    ring_ = true;
  }
  if (progress.fresh.empty()) {
    return absl::OkStatus();
  }
  const bool for_evaluation = progress.fetch == snapshot_fetch_;
  const std::span<float> values =
      for_evaluation ? replica_.evaluation.writable() : replica_.fetch.values();
  std::size_t next = 0;
  for (std::size_t i = 0; i < reply.shards.size() && next < progress.fresh.size(); ++i) {
    if (reply.shards[i].outcome != FetchOutcome::kFound) {
      continue;
    }
    if (i != progress.fresh[next]) {
      return absl::InternalError("a parameter server sent a shard that was not asked for");
    }
    const Shard& shard = replica_.layout.shards()[reply.shards[i].shard];
    const std::uint64_t begin = replica_.layout.OffsetOf(shard.tensor) + shard.begin;
    ADAMANT_RETURN_IF_ERROR(read(values.subspan(begin, shard.size())));
    ++next;
  }
  if (!progress.complete) {
    return absl::OkStatus();
  }
  ++statistics_.fetches;
  ring_ = true;
  if (for_evaluation) {
    pushes_.Drop(std::exchange(snapshot_fetch_, 0));
    replica_.evaluation.SetLoaded(snapshot_);
    return absl::OkStatus();
  }
  MarkIncluded();
  fetch_complete_ = true;
  if (!renewing_) {
    replica_.fetch.Complete();
  }
  return absl::OkStatus();
}

// A value that was fetched and waits to be applied may lack this push, whose accumulator goes.
void Exchange::FoldIntoFetch(Sequence sequence, const Accumulator& accumulator) {
  if (fetch_ == 0) {
    return;
  }
  for (const PushedShard& pushed : replica_.plan.pushed) {
    if (!pushes_.Received(fetch_, pushed.shard) ||
        pushes_.Includes(fetch_, pushed.shard, sequence)) {
      continue;
    }
    const Shard& shard = replica_.layout.shards()[pushed.shard];
    const TensorPlan& tensor = replica_.plan.tensors[shard.tensor];
    const std::uint64_t end = tensor.offset + shard.end;
    for (std::uint64_t begin = tensor.offset + shard.begin; begin < end;
         begin += UpdatePlan::kBlock) {
      const std::uint64_t size = std::min(UpdatePlan::kBlock, end - begin);
      AddLocalChange(tensor,
                     accumulator,
                     begin,
                     scratch_.span(),
                     replica_.fetch.values().subspan(begin, size));
    }
  }
}

void Exchange::StartFetch(Clock::TimePoint now) {
  if (renewing_) {
    return;  // the threads are about to get the values of now
  }
  if (fetch_ != 0) {
    pushes_.Applied(fetch_);
  }
  fetch_complete_ = false;
  fetch_ = pushes_.Fetch(0);
  PollServers(now);
}

void Exchange::MarkIncluded() {
  for (auto& [sequence, content] : in_flight_) {
    Accumulator& sum = *content->parts.front().accumulator;
    for (const PushedShard& pushed : replica_.plan.pushed) {
      sum.included[pushed.shard] =
          pushes_.Includes(fetch_, pushed.shard, sequence) ? std::uint8_t{1} : std::uint8_t{0};
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
  for (auto& [sequence, content] : in_flight_) {
    live.push_back(content->parts.front().accumulator);
  }
  ApplyFetched(replica_.plan,
               replica_.layout,
               live,
               scratch_.span(),
               replica_.fetch.values(),
               replica_.weights.span());
  pushes_.Applied(std::exchange(fetch_, 0));
  fetch_complete_ = false;
  renewing_ = false;
  const std::uint64_t fetch_every = replica_.options.fetch_every * replica_.options.threads;
  if (fetch_every > 0) {
    replica_.fetch_turn.store(replica_.steps.load() / fetch_every, std::memory_order_release);
  }
  replica_.commands.renewed.store(replica_.commands.reset_wanted.load(), std::memory_order_release);
  ring_ = true;
}

// --- Evaluation

void Exchange::WantSnapshot(std::uint64_t snapshot) {
  // Ids rise: batches that name an older one are of an evaluation that was given up.
  if (snapshot < newest_snapshot_) {
    return;
  }
  newest_snapshot_ = snapshot;
  replica_.evaluation.SetNewest(snapshot);
  ring_ = true;
  if (snapshot != snapshot_) {
    wanted_snapshot_ = snapshot;
  }
}

void Exchange::AdvanceEvaluation(Clock::TimePoint now) {
  if (wanted_snapshot_ == 0 || !replica_.evaluation.Clear()) {
    return;
  }
  pushes_.Drop(snapshot_fetch_);
  replica_.evaluation.SetMissing(0);
  snapshot_ = std::exchange(wanted_snapshot_, 0);
  snapshot_fetch_ = pushes_.Fetch(snapshot_);
  PollServers(now);
}

}  // namespace adamant::worker
