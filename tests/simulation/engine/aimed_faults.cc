#include "tests/simulation/engine/aimed_faults.h"

#include <algorithm>
#include <exception>

#include "services/common/base/rng.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kAim = 2;  // of the random numbers of a seed
constexpr double kOftenest = 0.9;

thread_local int ignored = 0;  // StepsIgnored that live

// Leaves the step in which its process dies.
struct Died {
  LifePtr life;
};

}  // namespace

std::string_view NameOf(StepFault fault) {
  switch (fault) {
    case StepFault::kPause:
      return "pause";
    case StepFault::kCrash:
      return "crash";
    case StepFault::kCutOff:
      break;
  }
  return "cut";
}

StepsIgnored::StepsIgnored() { ++ignored; }

StepsIgnored::~StepsIgnored() { --ignored; }

bool StepsIgnored::any() { return ignored > 0; }

AimedFaults::AimedFaults(Scheduler& scheduler, Body body)
    : scheduler_(scheduler),
      body_(std::move(body))
#ifdef ADAMANT_FAILPOINTS
      ,
      handler_([this](std::string_view step) {
        Pass(step);
        return absl::OkStatus();
      })
#endif
{
}

void AimedFaults::Aim(std::span<const Step> steps, double share, std::uint64_t seed) {
  Rng rng(MixSeed(seed, kAim));  // leaves the seed's other chances as they are
  for (const Step& step : steps) {
    const Plan plan{.fault = static_cast<StepFault>(rng.Below(kStepFaults)),
                    .after = rng.Below(static_cast<std::uint64_t>(step.passes) + 1)};
    if (rng.Uniform() < std::min(share / step.share, kOftenest)) {
      plans_.emplace(step.name, plan);
    }
  }
}

bool AimedFaults::RunNext() {
  const bool any = RunStep();
  if (const auto paused = std::exchange(paused_, std::nullopt)) {
    body_.pause(paused->life, paused->time);
  }
  return any;
}

bool AimedFaults::RunStep() {
  try {
    return scheduler_.RunNext();
  } catch (const Died& died) {
    body_.crash(died.life);
    return true;
  }
}

void AimedFaults::Pass(std::string_view step) {
  const LifePtr& life = scheduler_.running();
  if (life == nullptr || life->ended || std::uncaught_exceptions() > 0 || StepsIgnored::any()) {
    return;
  }
  ++passes_.try_emplace(std::string(step)).first->second;
  if (body_.passed != nullptr) {
    body_.passed(step, life);
  }
  const auto plan = plans_.find(step);
  if (plan == plans_.end() || plan->second.after-- > 0) {
    return;
  }
  const StepFault fault = plan->second.fault;
  plans_.erase(plan);
  Inject(step, fault);
}

void AimedFaults::Inject(std::string_view step, StepFault fault) {
  const LifePtr life = scheduler_.running();
  scheduler_.Record("fault", "at " + std::string(step) + ": " + std::string(NameOf(fault)));
  ++hits_[{std::string(step), fault}];
  switch (fault) {
    case StepFault::kPause:
      paused_ = {.life = life, .time = body_.pause_time(life)};
      life->paused_until = std::max(life->paused_until, scheduler_.Now() + paused_->time);
      return;
    case StepFault::kCrash:
      throw Died{life};
    case StepFault::kCutOff:
      return body_.cut_off(life);
  }
}

}  // namespace adamant::simulation
