#include "operator/core/job/bucket_outage.h"

#include <array>
#include <ctime>

namespace adamant::controller {
namespace {

constexpr std::array kUnserved = {"Blocked", "FailingOver", "Restoring"};

std::string TimeText(BucketOutage::WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

void BucketOutage::TellIn(JobReport& report, Clock::TimePoint now, WallTime wall) {
  std::uint32_t unserved = 0;
  std::string states;
  for (const char* state : kUnserved) {
    if (const auto found = report.bucket_summary.states.find(state);
        found != report.bucket_summary.states.end()) {
      unserved += found->second;
      states += (states.empty() ? "" : ", ") + std::to_string(found->second) + " " + state;
    }
  }
  const bool trains =
      report.phase == Phase::kRunning || report.phase == Phase::kEvaluating || report.goes_on;
  if (unserved == 0 || !trains) {
    begin_.reset();
    return;
  }
  if (!begin_) {
    begin_ = {.at = now, .wall = wall};
  }
  if (now - begin_->at >= kTimeout && report.message.empty()) {
    report.message = std::to_string(unserved) + " of " + std::to_string(report.buckets.size()) +
                     (unserved == 1 ? " buckets has" : " buckets have") +
                     " too few live copies to take updates since " + TimeText(begin_->wall) + " (" +
                     states + "); training waits for them";
  }
}

}  // namespace adamant::controller
