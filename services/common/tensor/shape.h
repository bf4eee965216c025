#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace adamant {

/// The extents of a tensor, outermost first: {channels, height, width}, {out, in}. An empty shape
/// is a scalar.
using Shape = std::vector<std::int64_t>;

/// The product of the extents; nullopt when one is negative or the product exceeds 2^48 (sizes come
/// from outside).
std::optional<std::int64_t> ElementCount(const Shape& shape);

/// "10x5x5"; "scalar" for the empty shape.
std::string ToString(const Shape& shape);

}  // namespace adamant
