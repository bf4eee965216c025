#pragma once

#include <functional>
#include <utility>

#include "operator/kube_client/base/sleeper.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::kubectl {

/// Time passes at once, and something happens meanwhile.
class ActingSleeper final : public kube::Sleeper {
 public:
  ActingSleeper(FakeClock& clock, std::function<void(int sleep)> act)
      : clock_(clock), act_(std::move(act)) {}

  bool Sleep(Clock::Duration time, const kube::Cancellation& cancellation) override {
    clock_.Advance(time);
    act_(++sleeps_);
    return !cancellation.cancelled();
  }

 private:
  FakeClock& clock_;
  const std::function<void(int sleep)> act_;
  int sleeps_ = 0;
};

}  // namespace adamant::kubectl
