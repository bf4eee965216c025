#include "operator/local/event_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "services/common/base/check.h"

namespace adamant::local {

EventQueue::EventQueue() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ADAMANT_CHECK(descriptor_ >= 0, "cannot create an eventfd");
}

EventQueue::~EventQueue() { close(descriptor_); }

void EventQueue::Push(controller::Event event) {
  MutexLock lock(mutex_);
  events_.push_back(std::move(event));
  const std::uint64_t one = 1;
  // It can fail only when the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof(one));
}

std::vector<controller::Event> EventQueue::TakeAll() {
  MutexLock lock(mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(descriptor_, &count, sizeof(count));
  return std::exchange(events_, {});
}

}  // namespace adamant::local
