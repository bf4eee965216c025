#include "operator/kube_client/cache/informer.h"

#include <utility>

namespace adamant::kube {

InformerCore::InformerCore(const Client& client,
                           const Resource& resource,
                           InformerOptions options,
                           ObjectCache::Parse parse,
                           const Clock& clock,
                           Sleeper& sleeper)
    : clock_(clock),
      sleeper_(sleeper),
      resync_(options.resync),
      cache_(std::move(parse)),
      reflector_(client.With(cancellation_),
                 resource,
                 std::move(options.selection),
                 cache_,
                 clock,
                 options.seed),
      resent_(clock.Now()) {}

void InformerCore::Start() {
  thread_.emplace([this] { return Step(); }, cancellation_, sleeper_);
}

void InformerCore::Stop() { thread_.reset(); }

Clock::Duration InformerCore::Step() {
  const Clock::Duration wait = reflector_.Step();
  if (const Clock::TimePoint now = clock_.Now(); now - resent_ >= resync_) {
    resent_ = now;
    cache_.Resend();
  }
  return wait;
}

}  // namespace adamant::kube
