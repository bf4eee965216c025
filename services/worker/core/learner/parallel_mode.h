#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace adamant::worker {

/// Way in which the training threads of a worker work together.
struct ParallelMode {
  std::size_t threads = 1;
  /// Batches of a thread whose changes go to the shared weights together; at most push_every.
  std::uint64_t share_every = 1;

  /// "OneThread", "Hogwild" (every batch), or "Accumulate".
  [[nodiscard]] std::string_view Name() const;

  friend bool operator==(const ParallelMode&, const ParallelMode&) = default;
};

/// Figures of a job that decide its ParallelMode.
struct ParallelWork {
  std::size_t threads = 1;  ///< that the job asks for
  std::uint64_t batch_size = 1;
  std::uint64_t push_every = 1;
  std::uint64_t parameters = 0;
  std::int64_t flop_per_example = 0;  ///< forward and backward
};

/// From here on two cores are far apart: in other clusters of a socket, or in other sockets.
inline constexpr double kFarPing = 80;  // nanoseconds

/// Threads that sweep the same weights take every cache line from each other. Where that takes more
/// than a quarter of a batch's computation, changes of several batches go to the weights together;
/// where threads would be slower than one thread even so, there is one. `ping` is what a cache line
/// takes from core to core in nanoseconds (CacheLinePing); nullopt, not known, counts as near. Only
/// whether it is near matters, so that the same job gets the same mode on like machines.
ParallelMode ChooseParallelMode(const ParallelWork& work, std::optional<double> ping);

}  // namespace adamant::worker
