#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/service/service.h"
#include "services/worker/core/worker.h"
#include "services/worker/rpc/exchange_loop.h"
#include "services/worker/rpc/inbox.h"
#include "services/worker/rpc/job/worker_job.h"
#include "services/worker/rpc/worker_metrics.h"

namespace adamant::worker {

/// A worker as a service: the training threads and the exchange loop of one job.
/// Threads: as service::Service; starts the training threads.
class WorkerService final : public service::Service {
 public:
  /// Creates the service; what `context` refers to must outlive it.
  explicit WorkerService(const service::ServiceContext& context);
  ~WorkerService() override;

  service::Endpoints GetEndpoints() override { return {}; }
  absl::Status Start(const v1::Welcome& welcome) override;
  void OnMessage(const protocol::ControllerMessage& message) override;
  void OnControllerAway() override { loop_->SetControllerHeard(false); }
  void OnRejoined() override { loop_->SetControllerHeard(true); }
  protocol::Heartbeat MakeHeartbeat() override;
  void Stop() override;

 private:
  void Train(std::size_t thread);

  service::ControllerLink& controller_;
  const std::uint32_t slot_;
  const rpc::MemberSecurity security_;
  const SystemClock clock_;
  WorkerMetrics metrics_;
  Inbox inbox_;

  // Set by Start; each refers to those before it.
  std::unique_ptr<const WorkerJob> job_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<ExchangeLoop> loop_;
  std::vector<std::jthread> threads_;
};

}  // namespace adamant::worker
