#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/system/job_attempt.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/tls/member_security.h"
#include "services/data_server/core/batch_scheduler.h"
#include "services/data_server/rpc/batch_pipeline.h"
#include "services/data_server/rpc/record_client.h"
#include "services/data_server/rpc/work_stream.h"

namespace adamant::data_server {

/// Handlers of the loop's messages to the controller. Called on the loop's thread; must not block.
struct ControllerHandlers {
  std::function<void(const protocol::MemberMessage&)> send;
  std::function<void(const absl::Status&)> fail;
};

/// Runs a BatchScheduler on one thread: inputs from streams, the controller, records and the clock
/// go in one after another, what it says goes out to queues that never block. Threads: any. Post
/// waits while too many inputs are queued.
class SchedulerLoop {
 public:
  struct Options {
    BatchSchedulerOptions scheduler;
    Normalisation normalisation;
    JobAttempt job = {};
    rpc::MemberSecurity security = {};
  };

  /// All must outlive this.
  SchedulerLoop(Options options,
                ControllerHandlers controller,
                BatchPipeline& pipeline,
                const DataMetrics& metrics);
  ~SchedulerLoop();
  SchedulerLoop(const SchedulerLoop&) = delete;
  SchedulerLoop& operator=(const SchedulerLoop&) = delete;

  /// Queues an input. `stream`: where it came from, for inputs of workers.
  void Post(Input input, std::shared_ptr<WorkStream> stream = nullptr);

  /// The controller's view: where the records are, and who is there.
  void SetMembership(const protocol::Membership& view);

  /// Ends the thread and breaks the streams.
  void Stop();

  [[nodiscard]] protocol::DataServerProgress progress() const;

  /// Of its thread, for a BusyMeter.
  [[nodiscard]] std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

 private:
  struct Event {
    Input input;
    std::shared_ptr<WorkStream> stream;
  };

  void Run();
  bool Next(Event& event);
  bool Register(const Event& event);
  void Handle(const Input& input);
  WorkStream* Find(WorkerId worker);

  void Send(const HelloAnswer& message);
  void Send(const Dispatch& dispatch);
  void Send(const Acknowledged& message);
  void Send(const Drained& message);
  void Send(const EpochClosed& message);
  void Send(const Disconnect& message);
  void Send(const EpochEnded& message);
  void Send(const PartClosed& message);
  void Send(const Evaluated& message);
  void Send(const Failed& message);
  void Send(const OpenedAlone& message);
  void Send(const ReadRecord& request);
  void Send(const WriteRecord& request);

  // Constant after construction.
  const Options options_;
  const PartLayout layout_;
  const PartLayout validation_layout_;
  const ControllerHandlers controller_;
  BatchPipeline& pipeline_;
  const DataMetrics& metrics_;
  const SystemClock clock_;

  std::atomic<std::uint64_t> turns_ = 0;

  // Of the loop's thread.
  std::map<WorkerId, std::shared_ptr<WorkStream>> streams_;

  // Guarded.
  mutable Mutex scheduler_mutex_;
  BatchScheduler scheduler_ ABSL_GUARDED_BY(scheduler_mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Event> queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::TimePoint> wake_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  RecordClient records_;  // its threads post
  std::thread thread_;    // last: it uses the others
};

}  // namespace adamant::data_server
