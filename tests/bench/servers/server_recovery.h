#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace adamant::bench {

/// Creates `shards` shards of 1 MB on the disk of a parameter server in `folder`, ends it, calls
/// `drop_cache`, and measures from opening the disk until a new server serves them all, with the
/// threads that the service reads with.
double SecondsOfServerRecovery(const std::filesystem::path& folder,
                               std::uint64_t shards,
                               const std::function<void()>& drop_cache);

}  // namespace adamant::bench
