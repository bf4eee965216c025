#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/worker/core/learner/training_thread.h"
#include "services/worker/core/worker.h"
#include "tests/bench/stale/batch_dispatcher.h"
#include "tests/bench/stale/pace.h"
#include "tests/bench/stale/step_clock.h"
#include "tests/bench/stale/virtual_clock.h"
#include "tests/bench/stale/virtual_network.h"
#include "tests/bench/stale/virtual_servers.h"

namespace adamant::bench {

struct VirtualWorkerOptions {
  parameter_server::WorkerId self = {};
  worker::WorkerOptions training;
  PaceOptions pace = {};
};

/// What all virtual workers of a job share; must outlive them.
struct VirtualJob {
  const model::Graph& graph;
  const ShardLayout& layout;
  const worker::UpdatePlan& plan;
  VirtualClock& clock;
  const VirtualNetwork& network;
  VirtualServers& servers;
  BatchDispatcher& scheduler;
};

/// The real core of a worker (Worker, TrainingThread) on a virtual clock. Batches and
/// acknowledgements take no time.
///
/// A step reads and changes the local weights when it begins; what it hands over is seen by the
/// synchroniser, and so by servers, when it is over. So a step sees no value that came meanwhile,
/// as a worker with one thread does not; another thread of the same worker sees its change early,
/// as the core does a step in one piece. Where the process stands still (Pace), nothing of it goes
/// on, and what comes waits; what it has sent goes on its way. Threads: one.
class VirtualWorker {
 public:
  /// Errors: as TrainingThread::Create.
  static absl::StatusOr<std::unique_ptr<VirtualWorker>> Create(const VirtualWorkerOptions& options,
                                                               const VirtualJob& job);

  void OnPlacement(const worker::PlacementView& placement) { worker_.OnPlacement(placement); }

  /// Does all that can be done without time passing: at the start, and when the scheduler has news.
  /// Events for what follows are added to the clock; clear it before this is destroyed.
  void Wake();

  /// Tells it to stop, as a controller does with workers that are too many: it pushes what it has,
  /// hands back the other batches, and ends.
  void Stop();

  /// Whether it has stopped, and may be destroyed.
  [[nodiscard]] bool gone() const { return worker_.synchroniser().Stopped() && events_ == 0; }

  [[nodiscard]] std::uint32_t slot() const { return options_.self.slot; }

  /// Why it cannot go on: training diverged, or the protocol was broken.
  [[nodiscard]] const absl::Status& status() const { return status_; }

  [[nodiscard]] worker::SynchroniserStatistics statistics() const {
    return worker_.synchroniser().statistics();
  }

 private:
  /// A training thread, and what it has told that the synchroniser does not see yet.
  struct Member {
    std::unique_ptr<StepClock> clock;
    std::unique_ptr<worker::TrainingThread> thread;
    std::vector<worker::ThreadEvent> told;
    std::optional<Clock::Duration> step;  ///< what the next one takes, where that is known
    bool steps = false;                   ///< now
  };

  /// To a server: messages of a direction do not overtake each other.
  struct Connection {
    Clock::TimePoint there{};  ///< when the last one comes
    Clock::TimePoint back{};
  };

  VirtualWorker(const VirtualWorkerOptions& options, const VirtualJob& job);
  Clock::TimePoint Send(worker::ServerSlot server, std::uint64_t bytes);
  Clock::TimePoint Answer(worker::ServerSlot server, std::uint64_t bytes);
  absl::Status MakeThreads();
  void TakeBatches();
  bool AdvanceSynchroniser();
  void At(Clock::TimePoint time, std::function<void()> event);
  bool Advance(std::size_t index);
  worker::TrainingThread::Progress Advance(Member& member, worker::ThreadChannel& channel);
  bool Exchanged(std::size_t index);
  void SetTimer();
  void Handle(worker::PushMessage& push);
  void Apply(const worker::PushMessage& push, const worker::PushPayload& payload);
  void Handle(worker::FetchMessage& fetch);
  void Handle(const worker::AcknowledgeMessage& message);
  void Handle(const worker::HandBackMessage& message);
  void Handle(const worker::FlushMessage& /*flush*/) {}  // nothing is retained
  void OnFetched(const VirtualServers::Fetched& fetched);

  const VirtualWorkerOptions options_;
  const VirtualJob job_;
  Pace pace_;
  VirtualLink link_;
  std::vector<Connection> connections_;  // by server
  worker::Worker worker_;
  std::vector<Member> members_;
  std::size_t dispatched_ = 0;  // batches, not yet acknowledged
  std::size_t events_ = 0;      // to come
  bool stopping_ = false;
  std::optional<Clock::TimePoint> timer_;
  absl::Status status_;
};

}  // namespace adamant::bench
