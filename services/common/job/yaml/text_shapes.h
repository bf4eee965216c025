#pragma once

#include <cstddef>
#include <string_view>

namespace adamant::v1 {
enum TextFormat : int;
}

namespace adamant::job {

/// Shape of the texts of one format.
struct TextShape {
  std::string_view pattern;  ///< of the whole text, in RE2's syntax; "": any text
  std::size_t shortest;      ///< bytes
  std::size_t longest;       ///< bytes
  std::string_view meaning;  ///< "1 to 63 of a-z, 0-9 and -, ..."
};

const TextShape& ShapeOf(v1::TextFormat format);

/// The keys of a map with values of this format: names of labels, or, if the values are free, of
/// annotations, as Kubernetes has them.
const TextShape& KeyShapeOf(v1::TextFormat values);

/// Returns whether `text` has the shape, which is one of the above. Any thread.
bool Matches(const TextShape& shape, std::string_view text);

}  // namespace adamant::job
