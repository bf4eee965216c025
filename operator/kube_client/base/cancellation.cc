#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "operator/kube_client/base/transport.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

struct Cancellation::State {
  Mutex mutex;
  CondVar changed;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
  std::uint64_t next ABSL_GUARDED_BY(mutex) = 1;
  std::uint64_t running ABSL_GUARDED_BY(mutex) = 0;  // id of the act that runs; 0: none
  std::map<std::uint64_t, std::function<void()>> acts ABSL_GUARDED_BY(mutex);
};

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}

void Cancellation::Cancel() const {
  State& state = *state_;
  state.mutex.Lock();
  state.cancelled = true;
  while (!state.acts.empty()) {
    auto node = state.acts.extract(state.acts.begin());
    state.running = node.key();
    state.mutex.Unlock();
    node.mapped()();
    state.mutex.Lock();
    state.running = 0;
    state.changed.NotifyAll();
  }
  state.mutex.Unlock();
}

bool Cancellation::cancelled() const {
  const MutexLock lock(state_->mutex);
  return state_->cancelled;
}

std::shared_ptr<void> Cancellation::OnCancel(std::function<void()> act) const {
  state_->mutex.Lock();
  if (state_->cancelled) {
    state_->mutex.Unlock();
    act();
    return nullptr;
  }
  const std::uint64_t id = state_->next++;
  state_->acts.emplace(id, std::move(act));
  state_->mutex.Unlock();
  return {nullptr, [state = state_, id](std::nullptr_t) {
            const MutexLock lock(state->mutex);
            state->acts.erase(id);
            while (state->running == id) {
              state->changed.Wait(state->mutex);
            }
          }};
}

}  // namespace adamant::kube
