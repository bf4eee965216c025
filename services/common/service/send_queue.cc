#include "services/common/service/send_queue.h"

#include <utility>

namespace adamant::service {

bool SendQueue::Push(v1::MemberMessage message) {
  MutexLock lock(mutex_);
  if (message.has_heartbeat()) {
    std::erase_if(messages_, [](const v1::MemberMessage& old) { return old.has_heartbeat(); });
  }
  const bool full = messages_.size() == kMaxMessages;
  if (full) {
    messages_.pop_front();
  }
  messages_.push_back(std::move(message));
  changed_.NotifyAll();
  return !full;
}

std::optional<v1::MemberMessage> SendQueue::Take() {
  MutexLock lock(mutex_);
  while (messages_.empty() && !interrupted_ && !closed_) {
    changed_.Wait(mutex_);
  }
  if (interrupted_ || messages_.empty()) {
    return std::nullopt;
  }
  v1::MemberMessage message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

void SendQueue::Interrupt() {
  MutexLock lock(mutex_);
  interrupted_ = true;
  changed_.NotifyAll();
}

void SendQueue::Resume() {
  MutexLock lock(mutex_);
  interrupted_ = false;
}

void SendQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

bool SendQueue::finished() const {
  MutexLock lock(mutex_);
  return closed_ && messages_.empty();
}

}  // namespace adamant::service
