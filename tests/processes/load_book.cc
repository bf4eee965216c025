#include "tests/processes/load_book.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "services/common/base/check.h"

namespace adamant::processes {
namespace {

constexpr std::uint64_t kLost = std::numeric_limits<std::uint64_t>::max();

// Weights start small, so that sums with whole numbers are this exact.
constexpr double kTolerance = 0.01;

}  // namespace

LoadBook::LoadBook(const ShardLayout& layout, const Options& options)
    : layout_(layout), options_(options), shards_(layout.shards().size()) {
  for (const Shard& shard : layout_.shards()) {
    const std::uint64_t before = std::min<std::uint64_t>(options.writer, shard.size());
    shards_[shard.id].elements = (shard.size() - before + options.writers - 1) / options.writers;
    ADAMANT_CHECK(shards_[shard.id].elements > 1, "a shard has fewer than two elements per writer");
  }
}

std::uint64_t LoadBook::Draw(ShardState& shard) const {
  return options_.writer + options_.writers * (shard.drawn++ % shard.elements);
}

const LoadBook::Update& LoadBook::Begin(ShardId id, bool poisoned) {
  ShardState& shard = shards_[id];
  ADAMANT_CHECK(!shard.in_flight.has_value(), "the shard has an update in flight");
  Update update{.shard = id, .sequence = shard.next};
  update.after_loss = shard.after_loss;
  if (shard.next <= shard.element_of.size()) {
    update.element = shard.element_of[shard.next - 1];  // again, after a rollback
  } else if (poisoned) {
    update.element = Draw(shard);
    update.poisoned = true;
    ++shard.drawn;  // the element that gets the NaN
  } else {
    update.element = Draw(shard);
    shard.element_of.push_back(update.element);
  }
  return shard.in_flight.emplace(update);
}

const LoadBook::Update* LoadBook::InFlight(ShardId shard) const {
  const auto& in_flight = shards_[shard].in_flight;
  return in_flight.has_value() ? &*in_flight : nullptr;
}

void LoadBook::OnAnswer(ShardId id, Sequence sequence, Answer answer, std::uint64_t expected) {
  ShardState& shard = shards_[id];
  if (!shard.in_flight.has_value() || shard.in_flight->sequence != sequence) {
    return;
  }
  if (answer == Answer::kUnexpected) {
    return OnUnexpected(id, expected);
  }
  const bool poisoned = shard.in_flight->poisoned;
  if (poisoned != (answer == Answer::kRefused)) {
    violations_.push_back("shard " + std::to_string(id) + ", sequence " + std::to_string(sequence) +
                          (poisoned ? ": a NaN was accepted" : ": a finite update was refused"));
  }
  if (answer == Answer::kRefused) {
    ++counts_.refused;
  } else {
    shard.next = sequence + 1;
    shard.after_loss = false;
    counts_.acknowledged += sequence > shard.acknowledged ? 1 : 0;
    shard.acknowledged = std::max(shard.acknowledged, sequence);
  }
  shard.in_flight.reset();
}

void LoadBook::OnPersisted(ShardId shard, Sequence sequence) {
  shards_[shard].persisted = std::max(shards_[shard].persisted, sequence);
}

// The server lacks updates that were acknowledged: sends them again, or skips them. A server that
// wants more than was sent is wrong.
void LoadBook::OnUnexpected(ShardId id, std::uint64_t expected) {
  ShardState& shard = shards_[id];
  const Update update = *shard.in_flight;
  if (expected == 0 || expected >= update.sequence) {
    violations_.push_back("shard " + std::to_string(id) + ": sequence " + std::to_string(expected) +
                          " is expected, " + std::to_string(update.sequence) + " was sent");
    return;
  }
  if (expected <= shard.persisted) {
    violations_.push_back("shard " + std::to_string(id) + ": sequence " + std::to_string(expected) +
                          " is expected, but what came before " +
                          std::to_string(shard.persisted + 1) + " was said to be on disk");
  }
  const std::uint64_t missing = shard.acknowledged + 1 - expected;
  counts_.rolled_back += missing;
  if (options_.retain) {
    shard.in_flight.reset();
    shard.next = expected;
    Begin(id, false);
    return;
  }
  counts_.lost += missing;
  std::fill(shard.element_of.begin() + static_cast<std::ptrdiff_t>(expected - 1),
            shard.element_of.begin() + static_cast<std::ptrdiff_t>(shard.acknowledged),
            kLost);
  shard.after_loss = true;
  shard.in_flight->after_loss = true;
}

std::vector<std::string> LoadBook::Check(ShardId id,
                                         std::span<const float> initial,
                                         std::span<const float> values,
                                         std::size_t limit) const {
  const ShardState& shard = shards_[id];
  if (values.size() != initial.size()) {
    return {"shard " + std::to_string(id) + " has " + std::to_string(values.size()) +
            " elements instead of " + std::to_string(initial.size())};
  }
  std::vector<std::uint32_t> sure(values.size());
  std::vector<std::uint32_t> perhaps(values.size());
  for (Sequence sequence = 1; sequence <= shard.acknowledged; ++sequence) {
    if (shard.element_of[sequence - 1] != kLost) {
      ++sure[shard.element_of[sequence - 1]];
    }
  }
  const bool open = shard.in_flight.has_value() && !shard.in_flight->poisoned;
  if (open && shard.in_flight->sequence > shard.acknowledged) {
    ++perhaps[shard.in_flight->element];
  }
  std::vector<std::string> faults;
  for (std::size_t i = options_.writer; i < values.size() && faults.size() < limit;
       i += options_.writers) {
    const double count = static_cast<double>(values[i]) - initial[i];
    const bool whole = std::abs(count - std::round(count)) < kTolerance;
    if (!whole || std::round(count) < sure[i] || std::round(count) > sure[i] + perhaps[i]) {
      faults.push_back("shard " + std::to_string(id) + ", element " + std::to_string(i) +
                       ": has grown by " + std::to_string(count) + " with " +
                       std::to_string(sure[i]) + " updates acknowledged and " +
                       std::to_string(perhaps[i]) + " unanswered");
    }
  }
  return faults;
}

LoadBook::Counts LoadBook::counts() const {
  Counts counts = counts_;
  counts.unanswered = static_cast<std::uint64_t>(
      std::count_if(shards_.begin(), shards_.end(), [](const ShardState& shard) {
        return shard.in_flight.has_value();
      }));
  return counts;
}

}  // namespace adamant::processes
