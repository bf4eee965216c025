#include "services/worker/core/sync/asynchrony/asynchrony.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace adamant::worker {
namespace {

// Measured: docs/bench/scaling.md. The forms follow from a linear model of workers that answer with
// a delay: docs/design/0009-asynchrony.md.

/// Delay at which the rate of one more worker beside an equal one has to fall to a half is the root
/// of this, in steps.
constexpr double kBearable = 40;

/// The share of the rate rises by this much within the delay.
constexpr double kGrowthPerDelay = 0.08;

constexpr double kMostLookAhead = 3;

/// Momentum on the servers remembers so many times the staleness.
constexpr double kMemoryPerGap = 10;

/// Two workers are never quite as fast as each other: up to here they are taken for equal.
constexpr double kNearlyEqual = 1.5;

/// Steps that momentum remembers beside one other worker, and the momentum above which what it
/// would add to a movement is not made up for.
constexpr double kMemoryBesideOne = 2;
constexpr double kMostMadeUpFor = 0.9;

/// A crowd below this swings little: between those of two and of three equal workers.
constexpr double kFew = 0.5;

/// Intervals between exchanges that a process may stand still before its push counts less.
constexpr double kBearableIntervals = 2;

constexpr double kTimeWeight = 0.1;
constexpr double kMostOfMeanTime = 4;

bool HasMomentum(const AsynchronyOptions& options) {
  return options.kind == OptimiserKind::kMomentum && options.momentum > 0;
}

// A worker answers its own changes at once, which balances as much of others' that it answers late.
// What is beyond that asks for a correction. What momentum on the servers makes of its changes it
// answers as late as others'.
double CrowdOf(const AsynchronyOptions& options, double others_per_own) {
  const bool late = HasMomentum(options) && options.location == OptimiserLocation::kServer;
  return late ? others_per_own : std::max(0.0, others_per_own - 1);
}

// Beside more than one other the rate falls with the square of the delay: nothing is as dear.
std::uint64_t IntervalOf(const AsynchronyOptions& options, double others_per_own) {
  if (others_per_own == 0) {
    return options.exchange_every;
  }
  const double per_step = others_per_own * static_cast<double>(options.threads);
  return per_step <= kNearlyEqual ? std::min(options.exchange_every, options.exchange_beside_one)
                                  : 1;
}

struct Others {
  double per_own = 0;         // examples
  std::uint32_t workers = 1;  // that there are, this one among them
};

// About one other thread trains beside the one of this worker, and momentum is here. A worker's own
// changes balance those that it answers late, unless momentum delays them as well: the memory has
// to be short. Of many, some may not have begun.
bool IsBesideOne(const AsynchronyOptions& options, const Others& others) {
  return HasMomentum(options) && options.location == OptimiserLocation::kWorker &&
         options.threads == 1 && others.workers == 2 && others.per_own > 0 &&
         others.per_own <= kNearlyEqual;
}

// What `factor` is beside an equal worker, it is the less the less others train.
double Beside(double others_per_own, double factor) {
  return 1 + std::min(1.0, others_per_own) * (std::min(1.0, factor) - 1);
}

double RateOf(const AsynchronyOptions& options, const Others& others, double delay_steps) {
  if (IsBesideOne(options, others)) {
    const double made_up = (1 - options.momentum) / (1 - kMostMadeUpFor);
    return Beside(others.per_own, made_up) / (1 + others.per_own);
  }
  return 1 / (1 + static_cast<double>(options.threads) * CrowdOf(options, others.per_own) *
                      delay_steps * delay_steps / kBearable);
}

// A moving mean to which what stands out counts little.
void AddTime(double seconds, double& mean) {
  mean += mean == 0 ? seconds : kTimeWeight * (std::min(seconds, kMostOfMeanTime * mean) - mean);
}

double MemoryOf(const AsynchronyOptions& options,
                const Others& others,
                double staleness_batches,
                std::uint64_t exchange_every) {
  if (!HasMomentum(options)) {
    return 1;
  }
  if (IsBesideOne(options, others)) {
    return Beside(others.per_own, kMemoryBesideOne * (1 - options.momentum));
  }
  const double crowd = CrowdOf(options, others.per_own);
  const double share = crowd / (crowd + 1);
  if (options.location == OptimiserLocation::kWorker) {
    return 1 + share;
  }
  const double remembered = static_cast<double>(exchange_every) / (1 - options.momentum);
  return 1 + share * std::max(0.0, kMemoryPerGap * staleness_batches / remembered - 1);
}

// Steps from a fetch to where the push begun from it lands, a step after it is sent. Pushes that
// are the more frequent follow the fetch by anything up to its interval: the mean.
double DelayOf(std::uint64_t fetch_every, std::uint64_t push_every) {
  return static_cast<double>(std::max(fetch_every, push_every) + push_every) / 2 + 1;
}

bool HasWritten(const AsynchronyOptions& options) {
  return options.written.fetch_every > 0 || options.written.push_every > 0;
}

std::uint64_t FetchEveryOf(const WrittenIntervals& written, std::uint64_t chosen) {
  return written.fetch_every > 0 ? written.fetch_every : chosen;
}

std::uint64_t PushEveryOf(const WrittenIntervals& written, std::uint64_t chosen) {
  return written.push_every > 0 ? written.push_every : chosen;
}

}  // namespace

AsynchronyOptions AsynchronyOptionsOf(const WorkerOptions& worker, const UpdatePlan& plan) {
  AsynchronyOptions options = {
      .corrects = worker.correct,
      .threads = worker.threads,
      .batch_size = worker.batch_size,
      .written = {.fetch_every = worker.choose_fetch ? 0 : worker.fetch_every,
                  .push_every = worker.choose_push ? 0 : worker.push_every},
      .exchange_every = worker.choose_push ? worker.push_every : worker.fetch_every,
      .exchange_beside_one = worker.exchange_beside_one};
  for (const TensorPlan& tensor : plan.tensors) {
    options.kind = tensor.optimiser.kind;
    options.location = tensor.optimiser.location;
    options.momentum = tensor.optimiser.momentum;
  }
  return options;
}

Expectation Expect(const AsynchronyOptions& options, std::uint32_t workers) {
  const Others others = {.per_own = static_cast<double>(std::max(workers, 1U) - 1),
                         .workers = workers};
  const std::uint64_t chosen = IntervalOf(options, others.per_own);
  Expectation expected;
  expected.fetch_every = FetchEveryOf(options.written, chosen);
  expected.push_every = PushEveryOf(options.written, chosen);
  const double delay = DelayOf(expected.fetch_every, expected.push_every);
  expected.staleness_batches = others.per_own * static_cast<double>(options.threads) * delay;
  if (options.corrects) {
    expected.correction = {.rate = static_cast<float>(RateOf(options, others, delay)),
                           .memory = static_cast<float>(MemoryOf(
                               options, others, expected.staleness_batches, expected.push_every))};
  }
  return expected;
}

Asynchrony::Asynchrony(const AsynchronyOptions& options, const UpdatePlan& plan, std::size_t shards)
    : options_(options), meter_(shards), gain_(plan, HasMomentum(options)) {
  guidance_.exchange_every = options.exchange_every;
}

double Asynchrony::staleness_batches() const {
  return meter_.gap_examples() / static_cast<double>(options_.batch_size);
}

// Before it is measured: as many as there are.
double Asynchrony::OthersPerOwn() const {
  return meter_.knows_others() ? meter_.others_per_own() : static_cast<double>(workers_ - 1);
}

double Asynchrony::Crowd() const { return CrowdOf(options_, OthersPerOwn()); }

std::uint64_t Asynchrony::FetchEvery() const {
  return FetchEveryOf(options_.written, guidance_.exchange_every);
}

std::uint64_t Asynchrony::PushEvery() const {
  return PushEveryOf(options_.written, guidance_.exchange_every);
}

// Steps of one of this worker's threads from a fetch to where the push begun from it lands. Over a
// long interval that was written, what is measured first says little of what comes.
double Asynchrony::DelaySteps() const {
  const double expected = DelayOf(FetchEvery(), PushEvery());
  if (!meter_.knows_gap()) {
    return expected;
  }
  const double per_step = OthersPerOwn() * static_cast<double>(options_.threads);
  const double measured = per_step > 0 ? staleness_batches() / per_step : 0;
  return HasWritten(options_) ? std::max(measured, expected) : measured;
}

double Asynchrony::gain() const { return active_ ? gain_.gain() : 1; }

void Asynchrony::OnFetched(std::span<const float> values, Clock::TimePoint now) {
  meter_.OnFetched();
  NoteTime(now);
  const bool joins = workers_ > 1 && (meter_.joined_others() || outdated_);
  if (!active_ && (meter_.seen_others() || joins)) {
    Activate();
  }
  if (!active_) {
    return;
  }
  ChooseInterval();
  guidance_.eager = true;
  if (options_.corrects) {
    ControlGain(values);
    Correct();
  }
}

void Asynchrony::NoteTime(Clock::TimePoint now) {
  if (fetched_at_.has_value()) {
    AddTime(std::chrono::duration<double>(now - *fetched_at_).count(), interval_seconds_);
  }
  fetched_at_ = now;
}

void Asynchrony::ControlGain(std::span<const float> values) {
  const double delay = std::max(DelaySteps(), 1.0);
  const double longest = static_cast<double>(FetchEvery() * GainControl::kLongestStretch);
  ++unobserved_;
  if (static_cast<double>(unobserved_) < std::floor(delay / longest)) {
    return;  // a stretch has room for so many only
  }
  const auto every = static_cast<double>(FetchEvery() * std::exchange(unobserved_, 0));
  const double stretch =
      std::clamp(std::round(delay / every), 2.0, static_cast<double>(GainControl::kLongestStretch));
  const Others others = {.per_own = OthersPerOwn(), .workers = workers_};
  const bool beside_one = IsBesideOne(options_, others);
  const GainControl::Crowd few =
      Crowd() < kFew ? GainControl::Crowd::kFew : GainControl::Crowd::kMany;
  gain_.Observe(values,
                {.stretch = static_cast<std::size_t>(stretch),
                 .growth = kGrowthPerDelay * std::min(1.0, every / delay),
                 .crowd = beside_one ? GainControl::Crowd::kOne : few,
                 .most = beside_one ? MostBesideOne(others.per_own)
                                    : 1 / RateOf(options_, others, DelaySteps())});
}

// Movements between which hardly a step lies agree by momentum: they do not say that more is borne.
double Asynchrony::MostBesideOne(double others_per_own) const {
  return PushEvery() > 1 ? 1 + others_per_own : 1;
}

// Whoever finds others begins with the share of the rate that leaves all together at one worker's.
void Asynchrony::Activate() {
  active_ = true;
  gain_.Start(1.0 / std::max(2.0, static_cast<double>(workers_)));
}

void Asynchrony::OnRenewed() {
  meter_.OnRenewed();
  gain_.Forget();
  unobserved_ = 0;
}

void Asynchrony::Correct() {
  const Others others = {.per_own = OthersPerOwn(), .workers = workers_};
  const double rate = RateOf(options_, others, DelaySteps());
  const double memory = MemoryOf(options_, others, staleness_batches(), PushEvery());
  guidance_.correction = {.rate = static_cast<float>(rate * gain()),
                          .memory = static_cast<float>(memory)};
  guidance_.look_ahead = 0;
  if (HasMomentum(options_) && !IsBesideOne(options_, others) && meter_.moved() > 0) {
    const double carries = options_.momentum / (1 - options_.momentum);
    guidance_.look_ahead = static_cast<float>(
        std::min(1.0, Crowd()) *
        std::min({meter_.gap_examples() / meter_.moved(), carries, kMostLookAhead}));
  }
}

void Asynchrony::ChooseInterval() {
  guidance_.exchange_every =
      hold_back_ ? options_.exchange_every : IntervalOf(options_, OthersPerOwn());
}

float Asynchrony::FreshnessAfter(Clock::Duration stood_still) const {
  const double seconds = std::chrono::duration<double>(stood_still).count();
  const double bearable = kBearableIntervals * interval_seconds_;
  return active_ && options_.corrects && seconds > bearable
             ? static_cast<float>(std::max(bearable / seconds, 1e-3))
             : 1.0f;
}

}  // namespace adamant::worker
