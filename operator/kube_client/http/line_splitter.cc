#include "operator/kube_client/http/line_splitter.h"

namespace adamant::kube {

absl::StatusOr<bool> LineSplitter::Add(std::string_view piece, const OnLine& on_line) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    if (part.size() > max_line_ - rest_.size()) {
      return absl::ResourceExhaustedError("a line of the stream is longer than the limit of " +
                                          std::to_string(max_line_) + " bytes");
    }
    if (end == std::string_view::npos) {
      rest_ += part;
      break;
    }
    piece.remove_prefix(end + 1);
    std::string_view line = part;
    if (!rest_.empty()) {
      rest_ += part;
      line = rest_;
    }
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty() && !on_line(line)) {
      return false;
    }
    rest_.clear();
  }
  return true;
}

}  // namespace adamant::kube
