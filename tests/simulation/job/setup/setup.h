#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/core/state/state.h"
#include "services/common/base/ids.h"
#include "services/common/base/rng.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/data_server/core/batch_scheduler.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/base/worker_options.h"

namespace adamant::simulation {

/// A small job, drawn from a seed. Every batch that is trained adds exactly 1 to an element of its
/// own, the same in every shard; so the values of a shard say which batches they contain.
struct Setup {
  static constexpr std::uint32_t kElements = 1024;  ///< of each shard: the most trained batches

  explicit Setup(std::uint64_t seed);

  std::uint32_t divergences = 0;  ///< how often training diverges; 0: the job does not go back
  bool loses_snapshots = false;   ///< as it goes back, volumes may turn out to be other ones
  controller::JobSettings job;
  std::uint32_t batch_size = 1;
  std::uint32_t train_examples = 0;
  std::uint32_t validation_examples = 0;
  double epoch_completion = 1;
  std::uint64_t warm_start_examples = 0;
  Clock::Duration step_time{};  ///< longest time of a batch
  std::uint64_t initial_seed = 0;
  double poison = 0;  ///< chance that a batch ends in NaN
  parameter_server::FlushLimits flush;
  std::uint64_t retain_bytes = 0;  ///< of each worker
  parameter_server::ReplicationTimes times;
  std::map<controller::SlotId, std::int64_t> drift;  ///< of clocks: ns a second that each is fast
  std::int64_t controller_drift = 0;
  parameter_server::PersistenceMode mode = parameter_server::PersistenceMode::kDelayed;

  model::Graph graph;
  std::vector<ParameterOptimiser> optimisers;
  ShardLayout layout;
  worker::WorkerOptions training;
  worker::UpdatePlan plan;

  /// How an update of 1 changes a weight: -1 when the server's rule subtracts it.
  [[nodiscard]] float sign() const {
    return optimisers.front().location == OptimiserLocation::kServer ? -1.0F : 1.0F;
  }

  [[nodiscard]] std::vector<float> InitialValues(ShardId shard) const;
  [[nodiscard]] data_server::BatchSchedulerOptions SchedulerOptions(std::uint32_t slot,
                                                                    Incarnation incarnation) const;
  [[nodiscard]] parameter_server::ParameterServerOptions ParameterServerOptions(
      const parameter_server::ServerId& self, std::uint64_t job_uid) const;

  /// One line, for failures.
  [[nodiscard]] std::string Describe() const;

 private:
  explicit Setup(Rng rng);
  void DrawClocks(Rng rng);
};

}  // namespace adamant::simulation
