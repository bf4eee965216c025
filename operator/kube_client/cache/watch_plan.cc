#include "operator/kube_client/cache/watch_plan.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace adamant::kube {
namespace {

constexpr std::chrono::milliseconds kFirstBackOff{800};
constexpr std::chrono::milliseconds kLongestFlakyBackOff{3'200};
// Of a resource that the server does not know: one that is installed anew is seen at once.
constexpr std::chrono::milliseconds kUnknownBackOff{1'000};
constexpr std::chrono::minutes kForgetFailures{2};
constexpr std::chrono::milliseconds kShort{500};  // a watch that has not worked

std::optional<std::uint64_t> Number(std::string_view version) {
  std::uint64_t number = 0;
  const char* const last = version.data() + version.size();
  const auto [end, error] = std::from_chars(version.data(), last, number);
  return error == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

// Whether a WatchList failed for a reason that has nothing to do with its being one.
bool WouldFailAList(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace

WatchPlan::WatchPlan(const Clock& clock, std::uint64_t seed) : clock_(clock), rng_(seed) {}

WatchPlan::Action WatchPlan::Next() {
  began_ = clock_.Now();
  changed_ = false;
  heard_ = false;
  const bool relist = version_.empty();
  step_ = !relist ? Step::kWatch : watch_list_ ? Step::kWatchList : Step::kList;
  const auto span = static_cast<std::uint64_t>((kLongestLifetime - kShortestLifetime).count());
  std::chrono::seconds lifetime = kShortestLifetime + std::chrono::seconds(rng_.Below(span + 1));
  if (quiet_ && !relist) {
    lifetime = kQuietLifetime;
  }
  return {step_, version_, lifetime};
}

void WatchPlan::OnComplete(std::string resource_version) {
  version_ = std::move(resource_version);
  if (step_ == Step::kWatchList) {
    step_ = Step::kWatch;  // the same stream goes on as a watch
  }
}

bool WatchPlan::OnChange(std::string resource_version) {
  changed_ = true;
  return Advance(std::move(resource_version));
}

bool WatchPlan::OnBookmark(std::string resource_version) {
  return Advance(std::move(resource_version));
}

bool WatchPlan::Advance(std::string version) {
  heard_ = true;
  const std::optional<std::uint64_t> before = Number(version_);
  const std::optional<std::uint64_t> now = Number(version);
  if (version.empty() || (before.has_value() && now.has_value() && *now < *before)) {
    Relist();
    return false;
  }
  version_ = std::move(version);
  return true;
}

Clock::Duration WatchPlan::Ended(const absl::Status& status) {
  switch (step_) {
    case Step::kWatchList:
      return EndedWatchList(status);
    case Step::kWatch:
      return EndedWatch(status);
    case Step::kList:
      break;
  }
  if (absl::IsNotFound(status)) {
    return BackOff(kUnknownBackOff);
  }
  return status.ok() ? Clock::Duration::zero() : BackOff();
}

Clock::Duration WatchPlan::EndedWatchList(const absl::Status& status) {
  if (absl::IsNotFound(status)) {
    return BackOff(kUnknownBackOff);
  }
  if (WouldFailAList(status.code())) {
    return BackOff();
  }
  watch_list_ = false;
  return Clock::Duration::zero();
}

Clock::Duration WatchPlan::EndedWatch(const absl::Status& status) {
  quiet_ = !changed_;
  const bool worked = heard_ || clock_.Now() - began_ >= kShort;
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
      return Clock::Duration::zero();
    case absl::StatusCode::kUnavailable:
      if (worked && clock_.Now() - began_ < kFlaky) {
        return BackOff(kLongestFlakyBackOff);
      }
      [[fallthrough]];
    case absl::StatusCode::kOk:
    case absl::StatusCode::kDeadlineExceeded:
      return worked && !version_.empty() ? Clock::Duration::zero() : BackOff();
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnauthenticated:
      return BackOff();
    case absl::StatusCode::kNotFound:
      Relist();
      return BackOff(kUnknownBackOff);
    default:
      Relist();
      return BackOff();
  }
}

Clock::Duration WatchPlan::BackOff(std::chrono::milliseconds longest) {
  const Clock::TimePoint now = clock_.Now();
  if (now - failed_ > kForgetFailures) {
    failures_ = 0;
  }
  failed_ = now;
  std::chrono::milliseconds wait = kFirstBackOff;
  for (int i = 0; i < failures_ && wait < longest; ++i) {
    wait *= 2;
  }
  ++failures_;
  return std::chrono::duration_cast<Clock::Duration>(std::min(wait, longest) *
                                                     rng_.Uniform(1.0, 2.0));
}

}  // namespace adamant::kube
