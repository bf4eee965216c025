#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "services/common/dataset/dataset.h"

namespace adamant::dataset {

/// Handwritten-looking digits, 28x28 grey, classes 0 to 9: a stroke skeleton per way of writing,
/// distorted at random (elastic, affine), drawn with a pen of random width, with gaps, blur and
/// noise.
struct DigitsOptions {
  std::uint64_t seed = 1;
  std::uint64_t examples = 60000;
  unsigned threads = 0;  ///< 0: one per core
};

inline constexpr std::uint32_t kDigitSide = 28;  ///< pixels

/// The most that are asked for by users; as job.proto has it.
inline constexpr std::uint64_t kMostDigits = 10'000'000;
inline constexpr std::uint64_t kMostDigitsSeed = (std::uint64_t{1} << 53) - 1;

/// Draws example `index` of these digits into `pixels`, kDigitSide * kDigitSide; returns its label.
/// Threads: any.
std::uint8_t DrawDigit(std::uint64_t seed, std::uint64_t index, std::span<std::uint8_t> pixels);

/// The label of that example.
std::uint8_t DigitLabel(std::uint64_t seed, std::uint64_t index);

/// Called on the thread that called the generator, from time to time and at the end.
using DigitsProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Draws the digits. Example i is a function of (seed, i) alone, whatever `examples` and `threads`
/// are: bit for bit on machines whose libm rounds alike.
/// Source: the distortions follow Simard, Steinkraus and Platt 2003 (affine and elastic).
/// Threads: starts `threads` - 1 and joins them before it returns.
Dataset GenerateDigits(const DigitsOptions& options, const DigitsProgress& progress = {});

/// The files that `adamant data digits` writes.
struct DigitsFilesOptions {
  std::uint64_t seed = 1;  ///< of the training set
  std::uint64_t validation_seed = 2;
  std::uint64_t train_examples = 60000;
  std::uint64_t validation_examples = 10000;
};

/// Generates a training and a validation set, each as GenerateDigits does, and writes them under
/// MnistPaths(folder, "train") and MnistPaths(folder, "t10k"); creates the folder. `progress`
/// counts the examples of both. Errors: of the file system, naming the path.
absl::Status WriteDigits(const std::string& folder,
                         const DigitsFilesOptions& options,
                         const DigitsProgress& progress = {});

}  // namespace adamant::dataset
