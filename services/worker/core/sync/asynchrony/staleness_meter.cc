#include "services/worker/core/sync/asynchrony/staleness_meter.h"

#include <algorithm>
#include <iterator>

namespace adamant::worker {
namespace {

constexpr std::int64_t kUnknown = -1;

/// Weight of a new sample in a moving mean.
constexpr double kWeight = 0.1;

/// Samples before one that is far above the mean is cut: a pause counts once, and not for long.
constexpr std::uint64_t kSamplesToTrust = 20;
constexpr double kMostOfMean = 4;

/// Pushes remembered: far more than can be in flight.
constexpr std::size_t kMostPushes = 256;

/// Mean of the differences of what is known on both sides; negative when nothing is.
template <class Counts>
double MeanGrowth(const Counts& from, const Counts& to) {
  double sum = 0;
  std::size_t known = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0 && to[i] >= from[i]) {
      sum += static_cast<double>(to[i] - from[i]);
      ++known;
    }
  }
  return known > 0 ? sum / static_cast<double>(known) : -1;
}

}  // namespace

StalenessMeter::StalenessMeter(std::size_t shards) : incoming_(shards, kUnknown) {}

void StalenessMeter::OnPush(Sequence sequence, std::uint64_t examples) {
  own_pushed_ += examples;
  pushes_[sequence] = {
      .own = own_pushed_, .first = first_ != nullptr ? first_ : base_, .last = base_};
  first_ = nullptr;
  if (pushes_.size() > kMostPushes) {
    pushes_.erase(pushes_.begin());
  }
}

// What of `examples` is not this worker's.
std::int64_t StalenessMeter::OthersOf(Sequence included, std::uint64_t examples) const {
  if (included == 0) {
    return static_cast<std::int64_t>(examples);
  }
  const auto push = pushes_.find(included);
  if (push == pushes_.end() || examples < push->second.own) {
    return kUnknown;
  }
  return static_cast<std::int64_t>(examples - push->second.own);
}

void StalenessMeter::OnValue(const FetchedShard& fetched) {
  incoming_[fetched.shard] = OthersOf(fetched.included_sequence, fetched.examples);
  const auto push = pushes_.find(fetched.included_sequence);
  if (push != pushes_.end()) {
    incoming_own_ = std::max(incoming_own_, push->second.own);
  }
}

void StalenessMeter::OnFetched() {
  fetched_ = std::make_shared<const Counts>(incoming_);
  if (base_ == nullptr) {
    joined_others_ = std::ranges::any_of(incoming_, [](std::int64_t others) { return others > 0; });
    return;
  }
  const double growth = MeanGrowth(*base_, *fetched_);
  moved_ = std::max(growth, 0.0);
  if (growth >= 0) {
    if (growth > 0) {
      SeeOthers();
    }
    Compare(growth);
  }
  own_at_last_fetch_ = incoming_own_;
}

void StalenessMeter::Compare(double growth) {
  const auto own = static_cast<double>(incoming_own_ - own_at_last_fetch_);
  if (own > 0) {
    growths_ += seen_others_ ? 1 : 0;
    others_ += kWeight * (not_compared_ + growth - others_);
    own_ += kWeight * (own - own_);
    not_compared_ = 0;
  } else if (own_pushed_ > 0) {
    not_compared_ += growth;
  }
}

void StalenessMeter::OnApplied() {
  base_ = fetched_;
  if (first_ == nullptr) {
    first_ = base_;
  }
}

void StalenessMeter::OnRenewed() {
  first_ = nullptr;
  not_compared_ = 0;
}

void StalenessMeter::OnReply(Sequence sequence, const std::vector<ShardAck>& acks) {
  const auto push = pushes_.find(sequence);
  last_gap_ = -1;
  if (push == pushes_.end() || push->second.last == nullptr) {
    return;
  }
  Counts from;
  Counts to;
  for (const ShardAck& ack : acks) {
    const std::int64_t others = OthersOf(sequence, ack.examples);
    if (ack.outcome == PushOutcome::kApplied && others >= (*push->second.last)[ack.shard]) {
      from.push_back((*push->second.first)[ack.shard]);
      to.push_back(others);
    }
  }
  last_gap_ = MeanGrowth(from, to);
  if (last_gap_ >= 0) {
    SeeGap(last_gap_);
  }
}

// The means begin when there is somebody to measure.
void StalenessMeter::SeeOthers() {
  if (!seen_others_) {
    seen_others_ = true;
    gap_ = others_ = own_ = 0;
    gaps_ = 0;
  }
}

void StalenessMeter::SeeGap(double gap) {
  if (gap > 0) {
    SeeOthers();
  }
  const double sample = gaps_ >= kSamplesToTrust ? std::min(gap, kMostOfMean * gap_ + 1) : gap;
  const double weight = std::max(kWeight, 1 / static_cast<double>(++gaps_));
  gap_ += weight * (sample - gap_);
}

}  // namespace adamant::worker
