#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::kube {

/// Cuts a stream of bytes into lines as they arrive. Every byte is looked at once, however the
/// stream is cut into pieces; only a line that is not complete yet is kept.
/// Threads: one at a time.
class LineSplitter {
 public:
  /// Takes a line without its end ("\n" or "\r\n"), valid during the call; false ends the stream.
  using OnLine = std::function<bool(std::string_view line)>;

  /// `max_line`: bytes a line may have.
  explicit LineSplitter(std::size_t max_line) : max_line_(max_line) {}

  /// Calls `on_line` for every line that `piece` completes, empty ones left out. Returns false when
  /// `on_line` did. Errors: ResourceExhausted for a line that is too long.
  absl::StatusOr<bool> Add(std::string_view piece, const OnLine& on_line);

 private:
  const std::size_t max_line_;
  std::string rest_;  // the start of a line
};

}  // namespace adamant::kube
