#include "services/common/tensor/shape.h"

namespace adamant {

std::optional<std::int64_t> ElementCount(const Shape& shape) {
  constexpr std::int64_t kMax = std::int64_t{1} << 48;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return std::nullopt;
    }
    if (extent != 0 && count > kMax / extent) {
      return std::nullopt;
    }
    count *= extent;
  }
  return count;
}

std::string ToString(const Shape& shape) {
  if (shape.empty()) {
    return "scalar";
  }
  std::string text;
  for (const std::int64_t extent : shape) {
    if (!text.empty()) {
      text += 'x';
    }
    text += std::to_string(extent);
  }
  return text;
}

}  // namespace adamant
