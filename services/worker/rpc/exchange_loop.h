#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "services/common/base/busy_meter.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/system/job_attempt.h"
#include "services/common/rpc/frame.h"
#include "services/common/service/service.h"
#include "services/worker/core/exchange.h"
#include "services/worker/core/replica.h"
#include "services/worker/rpc/drained_servers.h"
#include "services/worker/rpc/inbox.h"
#include "services/worker/rpc/link.h"
#include "services/worker/rpc/resumption.h"
#include "services/worker/rpc/work_receiver.h"
#include "services/worker/rpc/worker_metrics.h"

namespace adamant::v1 {
class Heartbeat;
class Membership;
}  // namespace adamant::v1

namespace adamant::worker {

/// Who this worker is.
struct WorkerIdentity {
  JobAttempt job = {};
  std::uint32_t slot = 0;
  std::uint64_t incarnation = 0;
};

/// The thread that drives Exchange, and the streams to all servers.
/// Threads: public members from any.
class ExchangeLoop {
 public:
  /// All of it must outlive this. `inbox` is what Replica::wake_loop wakes.
  struct Parts {
    Replica& replica;
    Inbox& inbox;
    service::ControllerLink& controller;
    WorkerMetrics& metrics;
    const Clock& clock;
  };

  /// `retain_bytes`: of acknowledged pushes that are kept until they are on servers' disks.
  ExchangeLoop(const WorkerIdentity& identity, std::uint64_t retain_bytes, const Parts& parts);

  /// Ends at once: what is not handed over by then is not.
  ~ExchangeLoop();

  void OnMembership(const v1::Membership& membership);
  void OnFlush(std::uint64_t epoch);
  void OnHold(std::uint64_t checkpoint);
  void OnRelease(std::uint64_t checkpoint);

  /// Whether the control stream is up, which the data servers are told.
  void SetControllerHeard(bool heard) { controller_heard_.store(heard); }

  /// Stops the training threads and hands over what they did; returns when that is acknowledged, or
  /// after `patience`.
  void Stop(std::chrono::milliseconds patience);

  /// Totals since the process started.
  void FillHeartbeat(v1::Heartbeat& heartbeat);

 private:
  using TimePoint = Clock::TimePoint;

  /// A stream to one server.
  struct Peer {
    std::string address;
    std::uint64_t incarnation = 0;
    std::unique_ptr<WorkReceiver> receiver;  // data servers
    std::unique_ptr<Link> link;
  };
  using Peers = std::map<ServerSlot, Peer>;

  void Run();
  absl::Status Turn();
  void AnswerController();
  void UpdatePeers(const v1::Membership& membership);
  void Connect(ServerSlot server, bool is_data_server, Peer& peer);
  void ConnectParameterServer(ServerSlot server, Peer& peer);
  void ConnectDataServer(ServerSlot server, Peer& peer);
  static void Disconnect(Peer& peer);
  void OnReply(rpc::IncomingFrame frame);
  absl::Status HandleReply(const rpc::IncomingFrame& frame);
  void SendMessages();
  void KeepLeases();
  void Publish();
  void Observe(std::uint64_t request, const metrics::Histogram& seconds);

  // Constant after construction.
  const WorkerIdentity identity_;
  Replica& replica_;
  Inbox& inbox_;
  service::ControllerLink& controller_;
  WorkerMetrics& metrics_;
  const Clock& clock_;

  // Of the loop's thread.
  Exchange exchange_;
  DrainedServers drained_;
  std::uint64_t membership_version_ = 0;
  Peers parameter_servers_;
  Peers data_servers_;
  Resumption resumption_;
  std::map<std::uint64_t, TimePoint> sent_;  // requests without a reply
  TimePoint keep_leases_at_;
  TimePoint publish_at_;
  absl::Status status_;

  std::atomic<bool> controller_heard_{true};

  // Guarded.
  Mutex mutex_;
  CondVar ended_changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  ExchangeStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  BusyMeter busy_ ABSL_GUARDED_BY(mutex_);

  std::atomic<std::uint64_t> turns_{0};  // odd while the loop works

  std::jthread thread_;
};

}  // namespace adamant::worker
