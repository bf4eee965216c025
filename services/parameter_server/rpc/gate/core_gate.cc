#include "services/parameter_server/rpc/gate/core_gate.h"

namespace adamant::parameter_server {

CoreGate::Pass::~Pass() {
  if (core_ != nullptr) {
    gate_->Leave(place_);
  }
}

CoreGate::Pass CoreGate::Enter() {
  const MutexLock lock(mutex_);
  if (core_ == nullptr) {
    return {this, nullptr, 0};
  }
  ++inside_;
  return {this, core_, turns_.Begin()};
}

std::vector<std::uint64_t> CoreGate::Turns() const {
  const MutexLock lock(mutex_);
  return turns_.all();
}

bool CoreGate::is_open() const {
  const MutexLock lock(mutex_);
  return core_ != nullptr;
}

void CoreGate::Leave(std::size_t place) {
  const MutexLock lock(mutex_);
  turns_.End(place);
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

absl::Status GateClosed() {
  return absl::UnavailableError("the parameter server is starting or stopping");
}

}  // namespace adamant::parameter_server
