#include "tests/simulation/job/processes/loss_window.h"

#include <utility>

namespace adamant::simulation {
namespace {

/// How much longer than the flush interval an update may be only in memory.
constexpr auto kSlack = milliseconds(50);

}  // namespace

void LossWindow::Hear(BucketId bucket, Clock::TimePoint now) {
  const auto [hearing, first] = hearing_.try_emplace(bucket, Hearing{.last = now});
  const Clock::Duration silence = now - std::exchange(hearing->second.last, now);
  if (silence > 2 * setup_.times.beacon) {
    hearing->second.deaf += silence;
  }
}

Clock::Duration LossWindow::At(BucketId bucket, Death death, Clock::TimePoint now) {
  using parameter_server::PersistenceMode;
  Hear(bucket, now);
  if (setup_.mode == PersistenceMode::kWalSync ||
      (setup_.mode == PersistenceMode::kWal && death == Death::kKilled)) {
    return Clock::Duration(0);
  }
  return clock_.ToWorld(setup_.flush.interval) + kSlack + hindered_ + hearing_[bucket].deaf;
}

}  // namespace adamant::simulation
