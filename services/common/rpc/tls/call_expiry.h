#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "services/common/base/mutex.h"

namespace adamant::rpc {

/// Ends calls whose client's certificate has ended. Threads: any; has one of its own.
class CallExpiry {
 public:
  using WallTime = std::chrono::system_clock::time_point;

  /// A call that is watched, until this is destroyed. Threads: one at a time.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class CallExpiry;
    Place(CallExpiry& expiry, std::pair<WallTime, std::uint64_t> key)
        : expiry_(expiry), key_(key) {}

    CallExpiry& expiry_;
    const std::pair<WallTime, std::uint64_t> key_;
  };

  CallExpiry();
  ~CallExpiry();  // all places are gone
  CallExpiry(const CallExpiry&) = delete;
  CallExpiry& operator=(const CallExpiry&) = delete;

  /// Calls `end` at `time`, or soon if that is past, unless the place is gone before: on another
  /// thread, under a lock. It must not wait.
  std::unique_ptr<Place> Watch(WallTime time, std::function<void()> end);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;

  // By time and number.
  std::map<std::pair<WallTime, std::uint64_t>, std::function<void()>> calls_
      ABSL_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace adamant::rpc
