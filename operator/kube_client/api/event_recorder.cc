#include "operator/kube_client/api/event_recorder.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/time.h"
#include "services/common/base/log.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::milliseconds kPoll{250};  // events are written in batches
constexpr std::size_t kMaxMessageBytes = 1024;   // of the API

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsUnauthenticated(status);
}

Json ToJson(const EventCorrelator::Entry& entry, const EventRecorderOptions& options) {
  const Event& event = entry.event;
  const std::string last = FormatTime(entry.last);
  return {{"metadata", {{"namespace", entry.name.ns}, {"name", entry.name.name}}},
          {"involvedObject",
           {{"apiVersion", event.object.api_version},
            {"kind", event.object.kind},
            {"namespace", event.object.key.ns},
            {"name", event.object.key.name},
            {"uid", event.object.uid}}},
          {"type", event.warning ? "Warning" : "Normal"},
          {"reason", event.reason},
          {"message", event.message.substr(0, kMaxMessageBytes)},
          {"source", {{"component", options.component}, {"host", options.instance}}},
          {"reportingComponent", options.component},
          {"reportingInstance", options.instance},
          {"count", entry.count},
          {"firstTimestamp", FormatTime(entry.first)},
          {"lastTimestamp", last}};
}

}  // namespace

EventRecorder::EventRecorder(const Client& client,
                             EventRecorderOptions options,
                             const Clock& clock,
                             Sleeper& sleeper)
    : client_(client.With(cancellation_)),
      options_(std::move(options)),
      sleeper_(sleeper),
      backoff_({.initial = std::chrono::seconds(1), .max = std::chrono::seconds(10)},
               options_.seed),
      correlator_(clock) {}

void EventRecorder::Record(Event event) {
  const MutexLock lock(mutex_);
  if (queue_.size() >= options_.max_queue) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(event));
}

void EventRecorder::Start() {
  thread_.emplace([this] { return Step(); }, cancellation_, sleeper_);
}

void EventRecorder::Stop() { thread_.reset(); }

Clock::Duration EventRecorder::Step() {
  while (pending_.has_value() || TakeNext()) {
    const absl::Status status = Write(*pending_);
    if (MayPass(status) && ++tries_ < options_.max_tries) {
      return backoff_.Next();
    }
    if (!status.ok() && !absl::IsCancelled(status)) {
      LogWarning("an event was not written",
                 {{"reason", pending_->event.reason}, {"error", status.ToString()}});
      const MutexLock lock(mutex_);
      ++dropped_;
    }
    pending_.reset();
    backoff_.Reset();
  }
  return kPoll;
}

bool EventRecorder::TakeNext() {
  tries_ = 0;
  const MutexLock lock(mutex_);
  while (!queue_.empty() && !pending_.has_value()) {
    pending_ = correlator_.Observe(queue_.front());
    queue_.pop_front();
    dropped_ += pending_.has_value() ? 0 : 1;
  }
  return pending_.has_value();
}

absl::Status EventRecorder::Write(const EventCorrelator::Entry& entry) const {
  if (entry.count > 1) {
    const Json patch = {{"count", entry.count}, {"lastTimestamp", FormatTime(entry.last)}};
    const absl::Status status =
        client_.Patch(kEvents, entry.name, PatchType::kMerge, patch).status();
    if (!absl::IsNotFound(status)) {
      return status;
    }
    // The API keeps events for an hour.
  }
  const absl::Status status = client_.Create(kEvents, ToJson(entry, options_)).status();
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;  // a try that seemed to fail
}

std::uint64_t EventRecorder::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace adamant::kube
