#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/storage/memory_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/worker/core/messages.h"
#include "services/worker/core/push_payload.h"

namespace adamant::bench {

struct VirtualServersOptions {
  std::uint32_t workers = 1;
  std::uint64_t seed = 1;                           ///< of the initial weights
  std::vector<ParameterOptimiser> optimisers = {};  ///< by parameter
};

/// The parameters of a job on one real parameter server (parameter_server::ParameterServer), with
/// one copy and nothing on disk, which answers at once. Threads: one.
class VirtualServers final : private parameter_server::Driver {
 public:
  struct Fetched {
    worker::FetchReply reply;
    std::vector<parameter_server::ShardValue> values = {};  ///< as in the reply; copies
  };

  /// `layout` and `clock` must outlive this. Errors: those of ParameterServer.
  static absl::StatusOr<std::unique_ptr<VirtualServers>> Start(const ShardLayout& layout,
                                                               const VirtualServersOptions& options,
                                                               const Clock& clock);

  /// For all workers, for good.
  [[nodiscard]] worker::ClusterMap Map() const;

  /// Takes a push of the worker in this slot. Nothing points into the payload afterwards.
  worker::PushReply Apply(std::uint32_t worker,
                          const worker::PushMessage& message,
                          const worker::PushPayload& payload);

  absl::StatusOr<Fetched> Fetch(std::uint32_t worker, const worker::FetchMessage& message);

  /// The parameters of now, end to end.
  absl::StatusOr<std::vector<float>> Weights();

 private:
  VirtualServers(const ShardLayout& layout,
                 const VirtualServersOptions& options,
                 const Clock& clock);
  absl::Status Begin();
  absl::Status Configure(bool created);

  // Driver: there are no peers, and the controller has nothing to decide.
  void SendToPeer(const parameter_server::Holder& /*to*/,
                  parameter_server::PeerMessage /*message*/) override {}
  void Propose(const parameter_server::Proposal& /*proposal*/) override {}
  void Report(const parameter_server::BucketReport& /*report*/) override {}
  void WantApply() override { apply_ = true; }
  void WantStorage() override { storage_ = true; }

  const ShardLayout& layout_;
  const std::uint32_t workers_;
  bool apply_ = false;
  bool storage_ = false;
  storage::MemoryStore store_;
  parameter_server::ParameterServer server_;  // last: it uses the others
};

}  // namespace adamant::bench
