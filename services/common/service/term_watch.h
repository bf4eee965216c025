#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "services/common/base/mutex.h"

namespace adamant::rpc {
struct ChannelSecurity;
}  // namespace adamant::rpc

namespace adamant::service {

/// Asks everybody who may be the controller for its term, now and then, so that a member of one
/// that was replaced without noticing finds its successor. Does nothing while only one may be.
/// Threads: made and destroyed by one; starts one, on which it asks.
class TermWatch {
 public:
  static constexpr std::chrono::milliseconds kInterval{3'000};

  /// `controller`: see rpc::Resolve. `on_term` is called on a thread of this,
  /// with every term that is heard. `security`: of the way there; null: plain text.
  TermWatch(std::string controller,
            std::string job,
            std::function<void(std::uint64_t)> on_term,
            std::chrono::milliseconds interval = kInterval,
            std::shared_ptr<const rpc::ChannelSecurity> security = nullptr);
  /// Waits for a call that has begun.
  ~TermWatch();
  TermWatch(const TermWatch&) = delete;
  TermWatch& operator=(const TermWatch&) = delete;

 private:
  void Run();
  bool StopsWithin(std::chrono::milliseconds time);

  const std::string controller_;
  const std::string job_;
  const std::function<void(std::uint64_t)> on_term_;
  const std::chrono::milliseconds interval_;
  const std::shared_ptr<const rpc::ChannelSecurity> security_;

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::jthread thread_;
};

}  // namespace adamant::service
