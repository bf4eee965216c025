#pragma once

#include <cmath>

namespace adamant::codec {

/// What is not finite would stay in every sum that it is added to.
inline double Finite(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace adamant::codec
