#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operator/kube_client/base/rate_limiter.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

struct WorkQueueOptions {
  std::chrono::milliseconds first_retry{5};
  std::chrono::milliseconds last_retry{1'000'000};
  double retry_rate = 10;  ///< of all keys together, a second
  double retry_burst = 100;
};

/// Is told what happens in a work queue. Called under the queue's lock: must be quick and must not
/// call back.
class WorkQueueObserver {
 public:
  virtual ~WorkQueueObserver() = default;
  virtual void OnAdd() = 0;                          ///< a key that was not in it already
  virtual void OnDepth(std::size_t ready) = 0;       ///< keys that wait for a worker
  virtual void OnTaken(Clock::Duration waited) = 0;  ///< from ready to taken
  virtual void OnDone(Clock::Duration worked) = 0;   ///< from taken to done
  virtual void OnRetry() = 0;
};

/// Keys that want attention. A key is in the queue once however often it is added, and is worked on
/// by one worker at a time; if it is added meanwhile it comes again after Done.
/// Threads: any.
class WorkQueue {
 public:
  /// `clock` and `observer` must outlive this.
  explicit WorkQueue(const Clock& clock,
                     WorkQueueOptions options = {},
                     WorkQueueObserver* observer = nullptr);

  void Add(const std::string& key);

  /// Adds the key when `delay` has passed; the earliest of several counts.
  void AddAfter(const std::string& key, Clock::Duration delay);

  /// Adds the key again after a failure: after a time that doubles from failure to failure of the
  /// key, and is no less than the rate of all retries allows.
  void Retry(const std::string& key);

  /// Forgets the failures of a key, after a success.
  void Forget(const std::string& key);

  /// Waits for a key; nullopt after ShutDown. Call Done when it is worked on.
  std::optional<std::string> Take();

  /// The same without waiting: nullopt also when no key is ready.
  std::optional<std::string> TryTake();

  void Done(const std::string& key);

  /// Adds are ignored from now on, and keys that nobody has taken yet are dropped: whoever works on
  /// them next finds out by itself, and sooner than a long queue is done.
  void ShutDown();

  /// Waits until no key is ready or being worked on; false if `timeout` passed before.
  bool WaitUntilIdle(std::chrono::milliseconds timeout);

  /// Returns the time at which the first of the delayed keys becomes ready.
  [[nodiscard]] std::optional<Clock::TimePoint> NextDue() const;
  [[nodiscard]] std::size_t depth() const;

 private:
  struct Ready {
    std::string key;
    Clock::TimePoint since;
  };

  void AddLocked(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddAfterLocked(const std::string& key, Clock::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeReady(const std::string& key, Clock::TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<std::string> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Clock& clock_;
  const WorkQueueOptions options_;
  WorkQueueObserver* const observer_;
  RateLimiter retries_;  // locks itself

  // Guarded.
  mutable Mutex mutex_;
  CondVar changed_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Ready> ready_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> waiting_ ABSL_GUARDED_BY(mutex_);  // ready, or to be after Done
  std::map<std::string, Clock::TimePoint> working_ ABSL_GUARDED_BY(mutex_);  // since when
  std::map<std::string, Clock::TimePoint> delayed_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Clock::TimePoint, std::string>> due_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
