#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/sync/pushes/push_payload.h"
#include "tests/bench/stale/virtual_network.h"

namespace adamant::bench {

struct VirtualServersOptions {
  std::uint32_t servers = 1;
  std::uint32_t workers = 1;                        ///< slots, at most at a time
  std::uint64_t seed = 1;                           ///< of the initial weights
  std::vector<ParameterOptimiser> optimisers = {};  ///< by parameter
};

/// The parameters of a job on real parameter servers (parameter_server::ParameterServer), each with
/// every n-th bucket, with one copy and nothing on disk, which answer at once. Threads: one.
class VirtualServers {
 public:
  struct Fetched {
    worker::FetchReply reply;
    std::vector<parameter_server::ShardValue> values = {};  ///< as in the reply; copies
  };

  /// `layout` and `clock` must outlive this. Errors: those of ParameterServer.
  static absl::StatusOr<std::unique_ptr<VirtualServers>> Start(const ShardLayout& layout,
                                                               const VirtualServersOptions& options,
                                                               const Clock& clock);
  ~VirtualServers();

  /// Lets a worker in, and no earlier one of its slot any more.
  /// Errors: InvalidArgument for a slot outside the job.
  absl::Status Admit(const parameter_server::WorkerId& worker);

  /// As it is with so many workers; for all of them. Each is newer than the one before.
  worker::PlacementView PlacementOf(std::uint32_t workers);

  /// Takes a push of this worker. Nothing points into the payload afterwards.
  worker::PushReply Apply(const parameter_server::WorkerId& worker,
                          const worker::PushMessage& message,
                          const worker::PushPayload& payload);

  absl::StatusOr<Fetched> Fetch(const parameter_server::WorkerId& worker,
                                const worker::FetchMessage& message);

  /// The parameters of now, end to end.
  absl::StatusOr<std::vector<float>> Weights();

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(servers_.size()); }

  VirtualLink& link(worker::ServerSlot server) { return links_[server]; }

 private:
  class Server;

  explicit VirtualServers(const ShardLayout& layout);
  [[nodiscard]] parameter_server::ServerId ServerIdOf(BucketId bucket) const;

  const ShardLayout& layout_;
  std::uint64_t placement_version_ = 0;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<VirtualLink> links_;  // by server
};

}  // namespace adamant::bench
