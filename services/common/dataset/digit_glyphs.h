#pragma once

#include <span>
#include <vector>

namespace adamant::dataset {

struct Point {
  double x = 0;
  double y = 0;
};

/// One line of the pen: a smooth curve through the points (Catmull-Rom spline), or straight lines
/// between them.
struct Stroke {
  bool smooth = false;
  std::vector<Point> points;
};

/// One way to write a digit. x grows to the right, y downwards; the digit fills about
/// [-0.6, 0.6] x [-1, 1].
using Glyph = std::vector<Stroke>;

/// The ways to write `digit` (0 to 9). Threads: any.
std::span<const Glyph> GlyphsOf(unsigned digit);

}  // namespace adamant::dataset
