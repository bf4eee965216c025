#include "operator/core/job/bucket_outage.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

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

// Of those that may be on other disks, too; later it is known that these have not all of them.
std::string DiskText(const JobReport& report,
                     BucketOutage::WallTime since,
                     Clock::Duration waited,
                     Clock::Duration allowed) {
  const DiskWait& wait = *report.disk_wait;
  std::string servers;
  for (const std::uint32_t slot : wait.servers) {
    servers += (servers.empty() ? "" : ", ") + ToString(SlotId{Role::kParameterServer, slot});
  }
  return std::to_string(wait.buckets) + " of " + std::to_string(report.buckets.size()) +
         (wait.buckets == 1 ? " buckets has" : " buckets have") +
         " to come back from disk, and what is on that of " + servers + " is not known since " +
         TimeText(since) + "; training waits for it" +
         (waited < allowed
              ? " until " + TimeText(since + std::chrono::ceil<std::chrono::seconds>(allowed)) +
                    ", and then goes on without, where other disks have all buckets"
              : ": no other disk has all of these buckets");
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
  const bool waits_to_start = !trains && report.disk_wait.has_value();
  if (!waits_to_start && (unserved == 0 || !trains)) {
    begin_.reset();
    return;
  }
  if (!begin_) {
    begin_ = {.at = now, .wall = wall};
  }
  if (now - begin_->at < kTimeout || !report.message.empty()) {
    return;
  }
  if (waits_to_start) {
    report.message =
        DiskText(report, begin_->wall, now - begin_->at, report.disk_wait->until - begin_->at);
  } else {
    report.message = std::to_string(unserved) + " of " + std::to_string(report.buckets.size()) +
                     (unserved == 1 ? " buckets has" : " buckets have") +
                     " too few live copies to take updates since " + TimeText(begin_->wall) + " (" +
                     states + "); training waits for them";
  }
}

}  // namespace adamant::controller
