#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "services/common/dataset/dataset.h"
#include "services/common/dataset/digits.h"

namespace adamant::dataset {

/// The digits of GenerateDigits, each drawn when it is asked for, so that the first batches need
/// not wait for the last. Threads of its own draw the others meanwhile, and end with it.
/// Threads: any. Starts `options.threads`.
class LazyDigits {
 public:
  /// `progress` is called on a thread of its own.
  explicit LazyDigits(const DigitsOptions& options, DigitsProgress progress = {});
  ~LazyDigits();
  LazyDigits(const LazyDigits&) = delete;
  LazyDigits& operator=(const LazyDigits&) = delete;

  /// Shape and labels are there from the start; an image only after Draw has returned for it.
  [[nodiscard]] const std::shared_ptr<const Dataset>& set() const { return set_; }

  /// Returns when the image is there.
  void Draw(std::uint64_t index);

  /// Returns the number of images that are there.
  [[nodiscard]] std::uint64_t drawn() const { return drawn_; }

 private:
  enum class State : std::uint8_t { kAbsent, kBegun, kDrawn };

  void DrawRest();

  const DigitsOptions options_;
  const DigitsProgress progress_;
  const std::shared_ptr<Dataset> digits_;  // an image is written by who has begun it
  const std::shared_ptr<const Dataset> set_;
  std::vector<std::atomic<State>> states_;
  std::atomic<std::uint64_t> next_ = 0;  // to be looked at by our threads
  std::atomic<std::uint64_t> drawn_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace adamant::dataset
