#pragma once

#include <cstdint>
#include <string>

namespace adamant::v1 {
class Distribution;
}  // namespace adamant::v1

namespace adamant::cli {

// Each returns what to warn of; "" where there is nothing. The arguments have their defaults.

/// Of `shareEvery` where a worker has no threads to share with.
std::string ShareWarning(const v1::Distribution& distribution);

/// Of a `retain` that has hardly any room; `push_bytes`: of one push of a worker.
std::string RetainWarning(const v1::Distribution& distribution, std::uint64_t push_bytes);

}  // namespace adamant::cli
