#pragma once

#include <cstddef>
#include <string_view>

namespace adamant {

/// Returns whether lists and objects of a JSON text lie more than so many deep in each other.
/// Libraries copy, compare and write values by recursion, so that text from outside, which may be
/// no JSON, could exhaust the stack.
bool NestsDeeper(std::string_view json, std::size_t levels);

}  // namespace adamant
