#include "services/worker/core/sync/fetches/weight_fetch.h"

#include <algorithm>
#include <utility>

#include "services/worker/core/learner/local_update.h"

namespace adamant::worker {

WeightFetch::WeightFetch(Learner& learner, FetchTracker& fetches)
    : learner_(learner), fetches_(fetches), scratch_(UpdatePlan::kBlock) {}

void WeightFetch::Start() { id_ = fetches_.Fetch(0); }

void WeightFetch::Abandon() {
  fetches_.Drop(std::exchange(id_, 0));
  learner_.fetch().Abandon();
  complete_ = false;
}

void WeightFetch::Add(ShardId id, const Accumulator& accumulator) {
  const Shard& shard = learner_.layout().shards()[id];
  const TensorPlan& tensor = learner_.plan().tensors[shard.tensor];
  const std::uint64_t end = tensor.offset + shard.end;
  for (std::uint64_t begin = tensor.offset + shard.begin; begin < end;
       begin += UpdatePlan::kBlock) {
    const std::uint64_t size = std::min(UpdatePlan::kBlock, end - begin);
    AddLocalChange(tensor,
                   accumulator,
                   begin,
                   scratch_.span(),
                   learner_.fetch().values().subspan(begin, size));
  }
}

void WeightFetch::AddRetained(const FetchedShard& fetched, const PushStore::Contents& retained) {
  const Shard& shard = learner_.layout().shards()[fetched.shard];
  if (!learner_.plan().tensors[shard.tensor].trained) {
    return;
  }
  for (auto push = retained.upper_bound(fetched.included_sequence); push != retained.end();
       ++push) {
    if (!push->second->refused) {
      Add(fetched.shard, *push->second->parts.front().accumulator);
    }
  }
}

void WeightFetch::AddRetired(Sequence sequence, const Accumulator& accumulator) {
  if (id_ == 0) {
    return;
  }
  for (const PushedShard& pushed : learner_.plan().pushed) {
    if (fetches_.Received(id_, pushed.shard) && !fetches_.Includes(id_, pushed.shard, sequence)) {
      Add(pushed.shard, accumulator);
    }
  }
}

void WeightFetch::OnComplete(const PushStore::Contents& in_flight) {
  for (const auto& [sequence, content] : in_flight) {
    Accumulator& sum = *content->parts.front().accumulator;
    for (const PushedShard& pushed : learner_.plan().pushed) {
      sum.included[pushed.shard] =
          fetches_.Includes(id_, pushed.shard, sequence) ? std::uint8_t{1} : std::uint8_t{0};
    }
  }
  complete_ = true;
}

void WeightFetch::Apply(const PushStore::Contents& in_flight) {
  std::vector<Accumulator*> live;
  for (const auto& [sequence, content] : in_flight) {
    live.push_back(content->parts.front().accumulator);
  }
  learner_.ReplaceWeights(live, scratch_.span());
}

std::vector<std::uint64_t> WeightFetch::Finish() {
  std::vector<std::uint64_t> versions = fetches_.Versions(id_);
  fetches_.Drop(std::exchange(id_, 0));
  complete_ = false;
  return versions;
}

}  // namespace adamant::worker
