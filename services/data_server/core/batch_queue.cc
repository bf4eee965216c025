#include "services/data_server/core/batch_queue.h"

#include <utility>

namespace adamant::data_server {

BatchQueue::BatchQueue(std::vector<bool> done) : done_(std::move(done)), is_out_(done_.size()) {}

// The batch is out no longer, if it was.
void BatchQueue::Settle(std::uint32_t batch) {
  out_ -= is_out_[batch] ? 1 : 0;
  is_out_[batch] = false;
}

void BatchQueue::SkipDone() {
  while (!returned_.empty() && done_[returned_.front().batch]) {
    returned_.pop_front();
  }
  while (next_ < done_.size() && done_[next_]) {
    ++next_;
  }
}

std::optional<BatchQueue::Entry> BatchQueue::Next() {
  SkipDone();
  Entry entry{.batch = next_};
  if (!returned_.empty()) {
    entry = returned_.front();
    returned_.pop_front();
  } else if (next_ == done_.size()) {
    return std::nullopt;
  } else {
    ++next_;
  }
  Settle(entry.batch);
  is_out_[entry.batch] = true;
  ++out_;
  return entry;
}

void BatchQueue::Return(Entry entry) {
  Settle(entry.batch);
  returned_.push_back(entry);
}

bool BatchQueue::MarkDone(std::uint32_t batch) {
  if (done_[batch]) {
    return false;
  }
  done_[batch] = true;
  Settle(batch);
  return true;
}

bool BatchQueue::HasReturned() {
  SkipDone();
  return !returned_.empty();
}

bool BatchQueue::HasNext() {
  SkipDone();
  return !returned_.empty() || next_ < done_.size();
}

void BatchQueue::Peek(std::size_t count, std::vector<std::uint32_t>& out) const {
  for (const Entry& entry : returned_) {
    if (count > 0 && !done_[entry.batch]) {
      out.push_back(entry.batch);
      --count;
    }
  }
  for (std::uint32_t batch = next_; batch < done_.size() && count > 0; ++batch) {
    if (!done_[batch]) {
      out.push_back(batch);
      --count;
    }
  }
}

}  // namespace adamant::data_server
