#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>

#include "absl/status/status.h"
#include "services/common/dataset/dataset.h"
#include "services/common/graph/context.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/update_plan.h"
#include "tests/bench/stale/batch_dispatcher.h"
#include "tests/bench/stale/stale_options.h"
#include "tests/bench/stale/stale_report.h"
#include "tests/bench/stale/virtual_clock.h"
#include "tests/bench/stale/virtual_fleet.h"
#include "tests/bench/stale/virtual_network.h"
#include "tests/bench/stale/virtual_servers.h"
#include "tests/bench/stale/virtual_worker.h"

namespace adamant::bench {

/// A job of virtual workers (virtual_worker.h) and real parameter servers on a virtual clock, so
/// that gradients are as old as beside so many machines. Equal options and data give equal lines.
///
/// Unlike a job: epochs follow each other without waiting, evaluations take no time and stop
/// nobody, and a job that diverges ends. Threads: one.
class StaleJob {
 public:
  /// Bytes become inputs as byte / 255.
  StaleJob(const StaleOptions& options,
           model::Graph graph,
           dataset::Dataset train,
           dataset::Dataset test);
  ~StaleJob();
  StaleJob(const StaleJob&) = delete;
  StaleJob& operator=(const StaleJob&) = delete;

  /// Trains until all examples are acknowledged. Writes a line of JSON per evaluation (StaleReport)
  /// and one at the end. To be called once.
  /// Errors: InvalidArgument when training diverges or the last model has learned nothing, which
  /// the last line tells too; as Check, or when there is too little memory; those of the net.
  absl::Status Run(std::ostream& lines);

 private:
  absl::Status Prepare();
  [[nodiscard]] absl::Status CheckMemory() const;
  [[nodiscard]] VirtualWorkerOptions WorkerOptionsOf(std::uint32_t slot) const;
  absl::Status Train(std::ostream& lines);
  absl::Status FollowScalings();
  [[nodiscard]] Moment Now() const;
  absl::Status Evaluate(std::ostream& lines);

  const StaleOptions options_;
  const model::Graph graph_;
  const dataset::Dataset train_;
  const dataset::Dataset test_;
  const ShardLayout layout_;
  const VirtualNetwork network_;
  VirtualClock clock_;
  BatchDispatcher scheduler_;
  StaleReport report_;
  worker::UpdatePlan plan_;
  std::unique_ptr<graph::Context> evaluator_;
  std::unique_ptr<VirtualServers> servers_;
  std::size_t scaled_ = 0;               // scalings that have happened
  std::unique_ptr<VirtualFleet> fleet_;  // last: it uses the others
};

}  // namespace adamant::bench
