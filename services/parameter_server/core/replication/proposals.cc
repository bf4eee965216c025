#include "services/parameter_server/core/replication/proposals.h"

#include <chrono>

namespace adamant::parameter_server {
namespace {

constexpr auto kRepeat = std::chrono::milliseconds(500);

}  // namespace

const Proposal& Proposals::Open(const Proposal& proposal, Clock::TimePoint now) {
  opened_at_ = now;
  RepeatAfter(now);
  return (proposal.kind == Proposal::Kind::kDrop ? drop_ : binding_).emplace(proposal);
}

void Proposals::SetLast(Lsn prepared) {
  if (binding_.has_value()) {
    binding_->last_lsn = prepared;
  }
}

void Proposals::Clear() {
  binding_.reset();
  drop_.reset();
}

void Proposals::RepeatAfter(Clock::TimePoint now) { repeat_at_ = now + kRepeat; }

}  // namespace adamant::parameter_server
