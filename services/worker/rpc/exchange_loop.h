#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/frame.h"
#include "services/common/service/service.h"
#include "services/worker/core/worker.h"
#include "services/worker/rpc/inbox.h"
#include "services/worker/rpc/progress_report.h"
#include "services/worker/rpc/request_times.h"
#include "services/worker/rpc/resumption.h"
#include "services/worker/rpc/servers/data_server_links.h"
#include "services/worker/rpc/servers/parameter_server_links.h"
#include "services/worker/rpc/worker_identity.h"
#include "services/worker/rpc/worker_metrics.h"

namespace adamant::worker {

/// The thread that drives Synchroniser, between the links to all servers.
/// Threads: public members from any.
class ExchangeLoop {
 public:
  /// Payload of a push or a fetch reply, unless one shard alone has more.
  static constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{4} << 20;

  /// All of it must outlive this. `inbox` is what Learner::WakeLoop wakes.
  struct Parts {
    Worker& worker;
    Inbox& inbox;
    service::ControllerLink& controller;
    WorkerMetrics& metrics;
    const Clock& clock;
  };

  ExchangeLoop(const WorkerIdentity& identity, const Parts& parts);

  /// Ends at once: what is not handed over by then is not.
  ~ExchangeLoop();

  void OnMembership(const protocol::Membership& view);
  void OnFlush(DataEpoch epoch);
  void OnPause(std::uint64_t checkpoint);
  void OnResume(std::uint64_t checkpoint);

  /// Notes whether the control stream is up, which the data servers are told.
  void SetControllerHeard(bool heard) { controller_heard_.store(heard); }

  /// Stops the training threads and hands over what they did; returns when that is acknowledged, or
  /// after `timeout`.
  void Stop(std::chrono::milliseconds timeout);

  /// Returns totals since the process started.
  protocol::Heartbeat MakeHeartbeat() { return report_.Read(); }

 private:
  using TimePoint = Clock::TimePoint;

  void Run();
  absl::Status Turn();
  void AnswerController();
  void SendProgress();
  void Publish();
  void SendMessages();
  void OnReply(rpc::IncomingFrame frame);
  absl::Status HandleReply(const rpc::IncomingFrame& frame);
  void UpdateServers(const protocol::Membership& view);
  ParameterServerHandlers HandlersOfParameterServers();
  DataServerHandlers HandlersOfDataServers();

  // Constant after construction.
  Worker& worker_;
  Inbox& inbox_;
  service::ControllerLink& controller_;
  WorkerMetrics& metrics_;
  const Clock& clock_;

  // Of the loop's thread.
  ParameterServerLinks parameter_servers_;
  DataServerLinks data_servers_;
  std::uint64_t membership_version_ = 0;
  RequestTimes requests_;
  Resumption resumption_;
  TimePoint keep_leases_at_;
  TimePoint publish_at_;
  absl::Status status_;

  std::atomic<bool> controller_heard_{true};
  ProgressReport report_;

  // Guarded.
  Mutex mutex_;
  CondVar ended_changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;

  std::jthread thread_;
};

}  // namespace adamant::worker
