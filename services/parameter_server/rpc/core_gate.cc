#include "services/parameter_server/rpc/core_gate.h"

namespace adamant::parameter_server {

CoreGate::Pass::~Pass() {
  if (core_ != nullptr) {
    gate_->Leave();
  }
}

CoreGate::Pass CoreGate::Enter() {
  const MutexLock lock(mutex_);
  inside_ += core_ != nullptr ? 1 : 0;
  return {this, core_};
}

bool CoreGate::is_open() const {
  const MutexLock lock(mutex_);
  return core_ != nullptr;
}

void CoreGate::Leave() {
  const MutexLock lock(mutex_);
  --inside_;
  left_.NotifyAll();
}

void CoreGate::Open(ParameterServer& core) {
  const MutexLock lock(mutex_);
  core_ = &core;
}

void CoreGate::Close() {
  const MutexLock lock(mutex_);
  core_ = nullptr;
  while (inside_ > 0) {
    left_.Wait(mutex_);
  }
}

}  // namespace adamant::parameter_server
