#include "services/common/base/backoff.h"

#include <algorithm>

namespace adamant {

Backoff::Backoff(BackoffOptions options, std::uint64_t seed)
    : options_(options), rng_(seed), last_(options.initial) {}

std::chrono::milliseconds Backoff::Next() {
  const double low = static_cast<double>(options_.initial.count());
  const double high = std::max(low, 3.0 * static_cast<double>(last_.count()));
  const auto drawn = std::chrono::milliseconds(static_cast<std::int64_t>(rng_.Uniform(low, high)));
  last_ = std::min(drawn, options_.max);
  return last_;
}

}  // namespace adamant
