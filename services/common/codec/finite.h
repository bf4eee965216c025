#pragma once

#include <cmath>

namespace adamant::codec {

/// Returns `value`, or 0 if that is not finite: it would stay in every sum that it is added to.
inline double Finite(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace adamant::codec
