#pragma once

#include <cstddef>
#include <cstdint>

#include "services/common/graph/context.h"

namespace adamant::worker {

/// Settings by which a worker trains.
struct WorkerOptions {
  std::size_t threads = 1;
  std::uint64_t fetch_every = 1;  ///< batches of a thread between two fetches; 0: never
  std::uint64_t push_every = 1;   ///< batches of a thread between two pushes
  /// True if these two are what a worker alone does, and the most; else they are kept as written.
  bool choose_fetch = false;
  bool choose_push = false;
  /// Interval of a worker beside about one other, where it chooses: at most that of one alone.
  std::uint64_t exchange_beside_one = 1;
  bool correct = false;           ///< for asynchrony (Asynchrony)
  std::uint64_t share_every = 1;  ///< batches of a thread that change the weights together
  bool pin_threads = false;       ///< each on a CPU of its own
  std::size_t batch_size = 1;
  std::size_t prefetch = 1;  ///< batches of a thread received ahead of need
  std::uint64_t seed = 0;    ///< of dropout
  graph::BackendKind backend = graph::BackendKind::kOneDnn;
};

}  // namespace adamant::worker
