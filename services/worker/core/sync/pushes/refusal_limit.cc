#include "services/worker/core/sync/pushes/refusal_limit.h"

#include <cstdio>
#include <string>

namespace adamant::worker {
namespace {

constexpr std::uint32_t kMaxInARow = 10;

std::string Decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

absl::Status RefusalLimit::OnRefused(const PushedShard* culprit, std::uint64_t progress) {
  if (++in_a_row_ < kMaxInARow) {
    return absl::OkStatus();
  }
  reached_ = true;
  const std::uint32_t tensor = culprit == nullptr ? 0 : layout_.shards()[culprit->shard].tensor;
  const double rate = plan_.tensors[tensor].optimiser.RateAt(progress);
  const std::string where =
      culprit == nullptr ? "" : " in layer " + layout_.parameters()[tensor].layer;
  return absl::InvalidArgumentError("training diverged: " + std::to_string(kMaxInARow) +
                                    " updates in a row held NaN or infinity, the last" + where +
                                    " at learning rate " + Decimal(rate));
}

}  // namespace adamant::worker
