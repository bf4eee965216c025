#include "services/parameter_server/core/replication/proposer.h"

#include <chrono>

namespace adamant::parameter_server {
namespace {

constexpr auto kRepeat = std::chrono::milliseconds(500);

}  // namespace

void Proposer::Propose(Proposal::Kind kind,
                       const ServerId& subject,
                       bool released,
                       Clock::TimePoint now) {
  opened_at_ = now;
  repeat_at_ = now + kRepeat;
  std::optional<Proposal>& kept = kind == Proposal::Kind::kDrop ? drop_ : binding_;
  kept = Proposal{.bucket = bucket_,
                  .configuration_version = configuration_.version,
                  .kind = kind,
                  .proposer = self_,
                  .subject = subject,
                  .last_lsn = log_.prepared(),
                  .released = released};
  host_.Propose(*kept);
}

void Proposer::Clear() {
  binding_.reset();
  drop_.reset();
}

void Proposer::Repeat(Clock::TimePoint now) {
  if (now < repeat_at_) {
    return;
  }
  repeat_at_ = now + kRepeat;
  if (binding_.has_value()) {
    binding_->last_lsn = log_.prepared();  // by now
    host_.Propose(*binding_);
  }
  if (drop_.has_value()) {
    host_.Propose(*drop_);
  }
}

Clock::TimePoint Proposer::NextRepeat() const {
  return binding_.has_value() || drop_.has_value() ? repeat_at_ : Clock::TimePoint::max();
}

}  // namespace adamant::parameter_server
