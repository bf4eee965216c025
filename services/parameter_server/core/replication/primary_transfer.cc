#include "services/parameter_server/core/replication/primary_transfer.h"

#include <chrono>

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {
namespace {

constexpr auto kRepeatRelease = std::chrono::milliseconds(100);

}  // namespace

void PrimaryTransfer::Begin(const ServerId& successor, Clock::TimePoint now) {
  successor_ = successor;
  next_release_ = now;
  Release(now);
}

void PrimaryTransfer::Release(Clock::TimePoint now) {
  if (successor_.has_value() && log_.entries().empty() && now >= next_release_) {
    next_release_ = now + kRepeatRelease;
    ADAMANT_FAILPOINT("replica/release");
    host_.Send(
        *successor_,
        {.bucket = bucket_, .configuration_version = configuration_.version, .kind = Released{}});
  }
}

Clock::TimePoint PrimaryTransfer::NextRelease() const {
  return successor_.has_value() && log_.entries().empty() ? next_release_ : Clock::TimePoint::max();
}

}  // namespace adamant::parameter_server
