#include "operator/kube_client/base/work_queue.h"

#include <algorithm>
#include <utility>

namespace adamant::kube {

WorkQueue::WorkQueue(const Clock& clock, WorkQueueOptions options, WorkQueueObserver* observer)
    : clock_(clock),
      options_(options),
      observer_(observer),
      retries_(options.retry_rate, options.retry_burst, clock) {}

void WorkQueue::Add(const std::string& key) {
  const MutexLock lock(mutex_);
  AddLocked(key);
}

void WorkQueue::AddAfter(const std::string& key, Clock::Duration delay) {
  const MutexLock lock(mutex_);
  AddAfterLocked(key, delay);
}

void WorkQueue::Retry(const std::string& key) {
  const MutexLock lock(mutex_);
  if (shut_down_) {
    return;
  }
  int& failures = failures_[key];
  Clock::Duration delay = options_.first_retry;
  for (int i = 0; i < failures && delay < options_.last_retry; ++i) {
    delay *= 2;
  }
  ++failures;
  delay = std::min<Clock::Duration>(delay, options_.last_retry);
  AddAfterLocked(key, std::max(delay, retries_.Reserve()));
  if (observer_ != nullptr) {
    observer_->OnRetry();
  }
}

void WorkQueue::Forget(const std::string& key) {
  const MutexLock lock(mutex_);
  failures_.erase(key);
}

std::optional<std::string> WorkQueue::Take() {
  const MutexLock lock(mutex_);
  while (true) {
    std::optional<std::string> key = TakeLocked();
    if (key.has_value() || shut_down_) {
      return key;
    }
    if (due_.empty()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitFor(mutex_, due_.begin()->first - clock_.Now());
    }
  }
}

std::optional<std::string> WorkQueue::TryTake() {
  const MutexLock lock(mutex_);
  return TakeLocked();
}

void WorkQueue::Done(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto working = working_.find(key);
  if (working == working_.end()) {
    return;
  }
  const Clock::TimePoint now = clock_.Now();
  if (observer_ != nullptr) {
    observer_->OnDone(now - working->second);
  }
  working_.erase(working);
  if (waiting_.contains(key)) {
    MakeReady(key, now);
  }
  changed_.NotifyAll();
}

void WorkQueue::ShutDown() {
  const MutexLock lock(mutex_);
  shut_down_ = true;
  due_.clear();
  delayed_.clear();
  ready_.clear();
  waiting_.clear();
  if (observer_ != nullptr) {
    observer_->OnDepth(0);
  }
  changed_.NotifyAll();
}

bool WorkQueue::WaitUntilIdle(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (!ready_.empty() || !working_.empty()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= Clock::Duration::zero()) {
      return false;
    }
    changed_.WaitFor(mutex_, left);
  }
  return true;
}

std::optional<Clock::TimePoint> WorkQueue::NextDue() const {
  const MutexLock lock(mutex_);
  return due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
}

std::size_t WorkQueue::depth() const {
  const MutexLock lock(mutex_);
  return ready_.size();
}

void WorkQueue::AddLocked(const std::string& key) {
  if (shut_down_ || !waiting_.insert(key).second) {
    return;
  }
  if (observer_ != nullptr) {
    observer_->OnAdd();
  }
  if (working_.contains(key)) {
    return;
  }
  MakeReady(key, clock_.Now());
}

void WorkQueue::AddAfterLocked(const std::string& key, Clock::Duration delay) {
  if (delay <= Clock::Duration::zero()) {
    AddLocked(key);
    return;
  }
  if (shut_down_) {
    return;
  }
  const Clock::TimePoint due = clock_.Now() + delay;
  const auto [delayed, is_new] = delayed_.emplace(key, due);
  if (!is_new) {
    if (delayed->second <= due) {
      return;
    }
    due_.erase({delayed->second, key});
    delayed->second = due;
  }
  due_.emplace(due, key);
  changed_.NotifyAll();  // who waits may have to wake up earlier
}

void WorkQueue::MakeReady(const std::string& key, Clock::TimePoint now) {
  ready_.push_back({key, now});
  changed_.NotifyAll();
  if (observer_ != nullptr) {
    observer_->OnDepth(ready_.size());
  }
}

void WorkQueue::MoveDue() {
  const Clock::TimePoint now = clock_.Now();
  while (!due_.empty() && due_.begin()->first <= now) {
    const std::string key = due_.begin()->second;
    due_.erase(due_.begin());
    delayed_.erase(key);
    AddLocked(key);
  }
}

std::optional<std::string> WorkQueue::TakeLocked() {
  MoveDue();
  if (ready_.empty()) {
    return std::nullopt;
  }
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  waiting_.erase(ready.key);
  const Clock::TimePoint now = clock_.Now();
  working_.emplace(ready.key, now);
  if (observer_ != nullptr) {
    observer_->OnTaken(now - ready.since);
    observer_->OnDepth(ready_.size());
  }
  return std::move(ready.key);
}

}  // namespace adamant::kube
