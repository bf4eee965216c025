#include "services/common/dataset/lazy_digits.h"

#include <algorithm>
#include <span>
#include <utility>

namespace adamant::dataset {
namespace {

constexpr std::uint64_t kReportEvery = 500;

std::shared_ptr<Dataset> Undrawn(const DigitsOptions& options) {
  auto digits = std::make_shared<Dataset>(Dataset{
      .channels = 1, .height = kDigitSide, .width = kDigitSide, .images = {}, .labels = {}});
  digits->images.resize(options.examples * digits->example_bytes());
  digits->labels.resize(options.examples);
  for (std::uint64_t i = 0; i < options.examples; ++i) {
    digits->labels[i] = DigitLabel(options.seed, i);
  }
  return digits;
}

}  // namespace

LazyDigits::LazyDigits(const DigitsOptions& options, DigitsProgress progress)
    : options_(options),
      progress_(std::move(progress)),
      digits_(Undrawn(options)),
      set_(digits_),
      states_(options.examples) {
  const unsigned threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { DrawRest(); });
  }
}

LazyDigits::~LazyDigits() {
  stop_ = true;
  threads_.clear();
}

void LazyDigits::Draw(std::uint64_t index) {
  std::atomic<State>& state = states_[index];
  State found = State::kAbsent;
  if (!state.compare_exchange_strong(found, State::kBegun)) {
    while (found != State::kDrawn) {
      state.wait(found);
      found = state.load();
    }
    return;
  }
  const std::uint64_t bytes = digits_->example_bytes();
  DrawDigit(options_.seed, index, std::span(digits_->images).subspan(index * bytes, bytes));
  ++drawn_;  // before anyone who waits for it can ask how many there are
  state = State::kDrawn;
  state.notify_all();
}

void LazyDigits::DrawRest() {
  while (!stop_) {
    const std::uint64_t index = next_++;
    if (index >= options_.examples) {
      return;
    }
    Draw(index);
    if (progress_ && ((index + 1) % kReportEvery == 0 || index + 1 == options_.examples)) {
      progress_(drawn_, options_.examples);
    }
  }
}

}  // namespace adamant::dataset
