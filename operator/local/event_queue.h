#pragma once

#include <vector>

#include "operator/core/state/actions.h"
#include "services/common/base/mutex.h"

namespace adamant::local {

/// Events for the controller from other threads. Its file descriptor is readable while events wait,
/// so that the main loop can poll it beside signals and processes.
/// Threads: any may Push; one takes.
class EventQueue {
 public:
  EventQueue();
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void Push(controller::Event event);

  /// All events that wait, in order.
  std::vector<controller::Event> TakeAll();

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;

  Mutex mutex_;
  std::vector<controller::Event> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::local
