#include "services/parameter_server/core/replication/handover.h"

#include <chrono>

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {
namespace {

constexpr auto kRepeatRelease = std::chrono::milliseconds(100);

}  // namespace

void Handover::Begin(const Holder& heir, Clock::TimePoint now) {
  heir_ = heir;
  next_release_ = now;
  Release(now);
}

void Handover::Release(Clock::TimePoint now) {
  if (heir_.has_value() && log_.entries().empty() && now >= next_release_) {
    next_release_ = now + kRepeatRelease;
    ADAMANT_FAILPOINT("replica/release");
    host_.Send(*heir_, {.bucket = bucket_, .epoch = configuration_.epoch, .kind = Released{}});
  }
}

Clock::TimePoint Handover::NextRelease() const {
  return heir_.has_value() && log_.entries().empty() ? next_release_ : Clock::TimePoint::max();
}

}  // namespace adamant::parameter_server
