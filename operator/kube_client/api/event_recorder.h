#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/event_correlator.h"
#include "operator/kube_client/base/step_thread.h"
#include "services/common/base/backoff.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

struct EventRecorderOptions {
  std::string component;  ///< who reports: "adamant-operator"
  std::string instance;   ///< which of them: the pod's name
  std::size_t max_queue = 1000;
  int max_tries = 12;  ///< of writing one event
  std::uint64_t seed = 1;
};

/// Tells users in events what happened to an object. Repetitions raise a count, and an object that
/// causes too many is not heard for a while.
/// Threads: Record by any; Start, Stop and Step by one.
class EventRecorder {
 public:
  /// `clock` and `sleeper` must outlive this.
  EventRecorder(const Client& client,
                EventRecorderOptions options,
                const Clock& clock,
                Sleeper& sleeper);
  ~EventRecorder() { Stop(); }
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  /// Never waits: an event that the queue has no room for is dropped and counted.
  void Record(Event event);

  /// Starts the thread that writes events.
  void Start();

  /// Ends it; what is still queued is dropped. Idempotent.
  void Stop();

  /// Instead of Start, for those who have no threads: writes what is queued.
  /// Returns the time to wait before the next step.
  Clock::Duration Step();

  /// Events not written: no room, too many of an object, or refused by the API.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  bool TakeNext();
  [[nodiscard]] absl::Status Write(const EventCorrelator::Entry& entry) const;

  const Cancellation cancellation_;
  const Client client_;
  const EventRecorderOptions options_;
  Sleeper& sleeper_;

  // Of who steps.
  Backoff backoff_;
  EventCorrelator correlator_;
  std::optional<EventCorrelator::Entry> pending_;  // being written
  int tries_ = 0;                                  // of it
  std::optional<StepThread> thread_;

  mutable Mutex mutex_;
  std::deque<Event> queue_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace adamant::kube
