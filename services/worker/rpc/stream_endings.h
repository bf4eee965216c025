#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <optional>

#include "services/common/base/log.h"

namespace adamant::worker {

/// The endings of the streams to one server: a server that lets a client in and ends the stream at
/// once, again and again, fails all the same.
/// Threads: one at a time.
class StreamEndings {
 public:
  /// A stream that lasted as long was good.
  static constexpr std::chrono::seconds kGood{1};

  /// So many endings in a row are a warning; until then each is told, from then on the first,
  /// second, fourth, eighth …
  static constexpr std::uint32_t kMany = 16;

  /// A stream has ended, `lasted` after it was let in. How that is told; nullopt: it is not.
  std::optional<LogLevel> OnEnd(std::chrono::steady_clock::duration lasted) {
    row_ = lasted >= kGood ? 1 : row_ + 1;
    if (row_ < kMany) {
      return LogLevel::kInfo;
    }
    return std::has_single_bit(row_) ? std::optional(LogLevel::kWarning) : std::nullopt;
  }

  /// Endings since a stream was good, the last one among them.
  [[nodiscard]] std::uint32_t row() const { return row_; }

 private:
  std::uint32_t row_ = 0;
};

}  // namespace adamant::worker
