#pragma once

#include <cstddef>
#include <string_view>

namespace adamant::v1 {
enum TextFormat : int;
}

namespace adamant::job {

/// What a text of one format looks like.
struct TextShape {
  std::string_view pattern;  ///< of the whole text, in RE2's syntax; "": any text
  std::size_t shortest;      ///< bytes
  std::size_t longest;       ///< bytes
  std::string_view meaning;  ///< "1 to 63 of a-z, 0-9 and -, ..."
};

const TextShape& ShapeOf(v1::TextFormat format);

/// The keys of maps: names of labels and annotations, as Kubernetes has them.
const TextShape& KeyShape();

/// Whether `text` has the shape.
bool Matches(const TextShape& shape, std::string_view text);

}  // namespace adamant::job
