#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/busy_meter.h"
#include "services/common/base/mutex.h"

namespace adamant::parameter_server {

class ParameterServer;

/// Lets handlers at the core between Open and Close: the server listens before the core exists, and
/// the last flush must come after the last update.
/// Threads: any.
class CoreGate {
 public:
  /// Keeps the core in place while it lives. Empty when the gate is closed.
  class Pass {
   public:
    Pass(CoreGate* gate, ParameterServer* core, std::size_t place)
        : gate_(gate), core_(core), place_(place) {}
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    explicit operator bool() const { return core_ != nullptr; }
    ParameterServer& operator*() const { return *core_; }
    ParameterServer* operator->() const { return core_; }

   private:
    CoreGate* gate_;
    ParameterServer* core_;
    std::size_t place_;
  };

  [[nodiscard]] Pass Enter();

  [[nodiscard]] bool is_open() const;

  /// For a BusyMeter: who is inside is at work, and waits for nobody but the core.
  [[nodiscard]] std::vector<std::uint64_t> Turns() const;

  /// `core` must stay until Close has returned.
  void Open(ParameterServer& core);

  /// Lets nobody in any more and waits until all have left.
  void Close();

 private:
  void Leave(std::size_t place);

  // Guarded.
  mutable Mutex mutex_;
  CondVar left_;
  ParameterServer* core_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  adamant::Turns turns_ ABSL_GUARDED_BY(mutex_);
};

/// The error of who was not let in.
absl::Status GateClosed();

}  // namespace adamant::parameter_server
