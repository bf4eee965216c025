#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "services/common/base/busy_meter.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/service/service.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/controller/replication_metrics.h"
#include "services/parameter_server/rpc/peers/peers.h"

namespace adamant::parameter_server {

/// Drives a core: lets time pass for it, applies what it has committed, and carries its messages to
/// peers, controller and disk.
/// Threads: any; Start and Stop from one. Starts three.
class CoreDriver final : public Driver {
 public:
  struct Links {
    Peers& peers;
    service::ControllerLink& controller;
    std::function<void()> want_storage;
  };

  /// `metrics`, and what is in `links`, must outlive this.
  CoreDriver(Links links, const ReplicationMetrics& metrics);
  ~CoreDriver() override;

  /// Starts the threads. `core` must outlive Stop.
  void Start(ParameterServer& core, Clock::Duration tick);

  /// Ends the threads. Idempotent.
  void Stop();

  /// Of its threads, for a BusyMeter.
  [[nodiscard]] std::vector<std::uint64_t> Turns() const;

  // Driver.
  void SendToPeer(const ServerId& to, PeerMessage message) override;
  void Propose(const Proposal& proposal) override;
  void Report(const BucketReport& report) override;
  void WantApply() override;
  void WantStorage() override;

 private:
  void KeepTicking(ParameterServer& core, Clock::Duration tick);
  void KeepApplying(ParameterServer& core);
  void SendToController(std::vector<Proposal> proposals, const std::vector<BucketReport>& reports);

  // Constant after construction.
  const Links links_;
  const ReplicationMetrics& metrics_;

  // Guarded.
  mutable Mutex mutex_;
  CondVar ticker_changed_;
  CondVar appliers_changed_;
  std::vector<Proposal> proposals_ ABSL_GUARDED_BY(mutex_);
  std::vector<BucketReport> reports_ ABSL_GUARDED_BY(mutex_);
  bool apply_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  adamant::Turns turns_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::jthread> threads_;
};

}  // namespace adamant::parameter_server
