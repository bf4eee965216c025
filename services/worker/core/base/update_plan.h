#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/model/model.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::worker {

/// A shard that every push carries.
struct PushedShard {
  ShardId shard = 0;
  std::uint64_t bytes = 0;          ///< of its values in a push; 0 with Activations
  std::uint64_t operand_bytes = 0;  ///< with Activations: most bytes of the layer's rows
};

/// Kind of data that is pushed for a tensor.
enum class UpdateProtocol { kAuto, kGradients, kActivations };

/// Plan by which one parameter tensor is updated.
struct TensorPlan {
  std::uint64_t offset = 0;  ///< in the flat parameters
  std::uint64_t size = 0;
  ParameterOptimiser optimiser;
  bool trained = true;       ///< false: its rate is 0, it never changes
  bool activations = false;  ///< rows are pushed, the server multiplies
  std::uint64_t inputs = 0;  ///< of a fully connected layer's weight, else 0
  std::uint64_t outputs = 0;
};

struct UpdatePlanOptions {
  std::vector<ParameterOptimiser> optimisers;  ///< by tensor
  std::vector<UpdateProtocol> protocols;       ///< by tensor; Activations elsewhere than on the
                                               ///< weights of fully connected layers is ignored
  std::uint64_t push_every = 1;
  std::uint64_t batch_size = 1;
  std::uint64_t threads = 1;
  std::uint64_t servers = 1;            ///< parameter servers
  std::uint64_t max_operand_bytes = 0;  ///< of the rows of one layer in one message
};

/// Plan by which every parameter of a job is updated; decided once, by the job alone.
/// Threads: immutable value.
struct UpdatePlan {
  /// Parameters that are updated at a time, so that all that belongs to them is in cache.
  static constexpr std::uint64_t kBlock = 2048;

  std::vector<TensorPlan> tensors;
  std::vector<PushedShard> pushed;  ///< shards of the trained tensors
  std::uint64_t elements = 0;       ///< of all parameters
  std::uint64_t max_rows = 0;       ///< of one accumulator: examples of push_every batches
  std::uint64_t max_summed = 1;     ///< accumulators that one push may sum

  /// Errors: InvalidArgument when the rows of a layer set to Activations do not fit into a message,
  /// or its optimiser is not on the server.
  static absl::StatusOr<UpdatePlan> Make(const model::Graph& graph,
                                         const ShardLayout& layout,
                                         const UpdatePlanOptions& options);

  /// Elements of the state of a thread's rules: one for each parameter, or none where no rule that
  /// workers run has one.
  [[nodiscard]] std::uint64_t StateSize() const;

  /// The tensor that the flat parameter lies in.
  [[nodiscard]] const TensorPlan& TensorOf(std::uint64_t parameter) const;
};

}  // namespace adamant::worker
