#include "operator/core/diagnosis/loss_trend.h"

#include <algorithm>

namespace adamant::controller {

void LossTrend::Restart() {
  begin_ = {};
  last_ = 0;
  high_periods_ = 0;
}

void LossTrend::OnMeter(double first) {
  const TrainingMeter::Totals& now = meter_.watched();
  if (now.trained < begin_.trained + Period()) {
    return;
  }
  last_ = now.MeanLossSince(begin_);
  begin_ = now;
  const double high = Limit(first, 1);
  high_periods_ = high > 0 && last_ > high ? high_periods_ + 1 : 0;
  double& best = state_.recovery.best_loss;
  best = best > 0 ? std::min(best, last_) : last_;
}

double LossTrend::Limit(double first, double share) const {
  const double best = state_.recovery.best_loss;
  const double high = std::max(kHigh * best, best + kGivenBack * (first - best));
  return best > 0 && first > 0 ? best + share * (high - best) : 0;
}

std::uint64_t LossTrend::Period() const {
  return std::max(kFewestExamples, TrainingExamples(settings_, state_) / kPeriods);
}

}  // namespace adamant::controller
