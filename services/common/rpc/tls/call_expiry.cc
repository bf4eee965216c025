#include "services/common/rpc/tls/call_expiry.h"

#include <algorithm>

namespace adamant::rpc {
namespace {

// The clock may be set: it is looked at again so often.
constexpr std::chrono::milliseconds kLongestWait(60'000);

}  // namespace

CallExpiry::Place::~Place() {
  const MutexLock lock(expiry_.mutex_);
  expiry_.calls_.erase(key_);
}

CallExpiry::CallExpiry() : thread_([this] { Run(); }) {}

CallExpiry::~CallExpiry() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::unique_ptr<CallExpiry::Place> CallExpiry::Watch(WallTime time, std::function<void()> end) {
  const MutexLock lock(mutex_);
  const std::pair key(time, ++last_id_);
  calls_.emplace(key, std::move(end));
  changed_.NotifyAll();
  return std::unique_ptr<Place>(new Place(*this, key));
}

void CallExpiry::Run() {
  const MutexLock lock(mutex_);
  while (!stop_) {
    const WallTime now = std::chrono::system_clock::now();
    while (!calls_.empty() && calls_.begin()->first.first <= now) {
      calls_.begin()->second();
      calls_.erase(calls_.begin());
    }
    if (calls_.empty()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitFor(
          mutex_, std::min<WallTime::duration>(calls_.begin()->first.first - now, kLongestWait));
    }
  }
}

}  // namespace adamant::rpc
