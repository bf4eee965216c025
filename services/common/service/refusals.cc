#include "services/common/service/refusals.h"

#include "services/common/base/log.h"
#include "services/common/rpc/tls/server_security.h"
#include "services/common/security/authorisation.h"

namespace adamant::service {

Refusals::Refusals(metrics::Registry& registry) : other_(CountersOf(registry, "other")) {
  for (const security::MethodRule& rule : security::MethodRules()) {
    known_.emplace(rule.method, CountersOf(registry, rule.method));
  }
}

void Refusals::Add(const rpc::Refusal& refusal) {
  const auto method = known_.find(refusal.method);
  const Counters& counters = method == known_.end() ? other_ : method->second;
  counters[refusal.peer.empty() ? 0 : 1].Increment();
  if (MayLog()) {
    LogWarning("refused a call", {{"why", refusal.why}});
  }
}

Refusals::Counters Refusals::CountersOf(metrics::Registry& registry, std::string_view method) {
  const auto add = [&](std::string_view reason) {
    return registry.AddCounter("adamant_rpc_refused_total",
                               "Calls refused for want of an identity, or of the right one.",
                               {{"method", method}, {"reason", reason}});
  };
  return {add("unauthenticated"), add("denied")};
}

bool Refusals::MayLog() {
  const Clock::TimePoint now = clock_.Now();
  const MutexLock lock(mutex_);
  if (now < log_from_) {
    return false;
  }
  log_from_ = now + kLogInterval;
  return true;
}

}  // namespace adamant::service
