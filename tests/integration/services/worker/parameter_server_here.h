#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"
#include "services/common/rpc/server.h"
#include "services/common/storage/memory_store.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/gate/core_gate.h"
#include "services/parameter_server/rpc/workers/exchange.h"
#include "services/parameter_server/rpc/workers/traffic_metrics.h"

namespace adamant::worker {

/// Streams that are open, so that a test can break them. Threads: any.
class OpenStreams {
 public:
  void Add(rpc::FrameStream& stream);
  void Remove(rpc::FrameStream& stream);
  void BreakAll();

 private:
  Mutex mutex_;
  std::vector<rpc::FrameStream*> streams_ ABSL_GUARDED_BY(mutex_);
};

/// The core of a parameter server behind a real listener; it alone has all buckets. Writes to its
/// disk as its options say, and when a worker asks.
/// Threads: any, but for Restart.
class ParameterServerHere final : private parameter_server::Driver {
 public:
  explicit ParameterServerHere(parameter_server::ParameterServerOptions options);
  ~ParameterServerHere() override;

  [[nodiscard]] const std::string& address() const { return server_->address(); }
  [[nodiscard]] parameter_server::ParameterServer& core() { return *core_; }
  void BreakStreams() { streams_.BreakAll(); }

  /// Dies, and comes back with what is on disk, at another address. Its buckets have another
  /// record then.
  void Restart();

  /// The record of all buckets.
  [[nodiscard]] const parameter_server::Configuration& record() const { return record_; }

  /// Versions of all shards: the updates they have taken.
  [[nodiscard]] std::vector<std::uint64_t> Versions();

 private:
  void SendToPeer(const parameter_server::ServerId& /*to*/,
                  parameter_server::PeerMessage /*message*/) override {}
  void Propose(const parameter_server::Proposal& /*proposal*/) override {}
  void Report(const parameter_server::BucketReport& /*report*/) override {}
  void WantApply() override { Want(); }
  void WantStorage() override { Want(); }

  void Want();
  void Start();
  void Die();
  void Configure();
  void Work();

  parameter_server::ParameterServerOptions options_;
  parameter_server::Configuration record_;
  const SystemClock clock_;
  storage::MemoryStore store_;
  metrics::Registry registry_;
  const parameter_server::TrafficMetrics metrics_{registry_};
  OpenStreams streams_;
  parameter_server::CoreGate gate_;
  const service::MemberGenerations members_;  // none: it does without TLS
  std::unique_ptr<parameter_server::ParameterServer> core_;
  std::unique_ptr<rpc::Server> server_;

  Mutex mutex_;
  CondVar changed_;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool dying_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread worker_;
};

}  // namespace adamant::worker
