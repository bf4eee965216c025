#include "services/data_server/core/record_requests.h"

#include <algorithm>
#include <utility>

namespace adamant::data_server {

void RecordRequests::Read(std::uint32_t part) {
  under_way_.emplace(next_request_, part);
  out_.emplace_back(ReadRecord{.request = next_request_++, .part = part});
}

void RecordRequests::ReadDue(TimePoint now) {
  for (auto it = read_at_.begin(); it != read_at_.end();) {
    if (it->second <= now) {
      Read(it->first);
      it = read_at_.erase(it);
    } else {
      ++it;
    }
  }
}

void RecordRequests::Write(WriteRecord write) {
  write.request = next_request_++;
  under_way_.emplace(write.request, write.part);
  out_.emplace_back(std::move(write));
}

std::optional<std::uint32_t> RecordRequests::Take(std::uint64_t request) {
  const auto found = under_way_.find(request);
  if (found == under_way_.end()) {
    return std::nullopt;
  }
  const std::uint32_t part = found->second;
  under_way_.erase(found);
  return part;
}

void RecordRequests::Drop(std::uint32_t part) {
  std::erase_if(under_way_, [part](const auto& request) { return request.second == part; });
  read_at_.erase(part);
}

bool RecordRequests::IsUnderWay(std::uint32_t part) const {
  return std::any_of(under_way_.begin(), under_way_.end(), [part](const auto& request) {
    return request.second == part;
  });
}

bool RecordRequests::TakePoll(TimePoint now) {
  if (!poll_at_ || now < *poll_at_) {
    return false;
  }
  poll_at_ = now + poll_interval_;
  return true;
}

std::optional<Clock::TimePoint> RecordRequests::NextWake() const {
  std::optional<TimePoint> next = poll_at_;
  for (const auto& [part, time] : read_at_) {
    next = next ? std::min(*next, time) : time;
  }
  return next;
}

}  // namespace adamant::data_server
