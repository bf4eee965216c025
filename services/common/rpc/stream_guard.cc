#include "services/common/rpc/stream_guard.h"

#include <utility>

#include "services/common/base/system/ip_address.h"

namespace adamant::rpc {

absl::Status CheckHelloBytes(std::uint64_t bytes) {
  return bytes <= kMostHelloBytes
             ? absl::OkStatus()
             : absl::InvalidArgumentError("the first message of a stream has " +
                                          std::to_string(bytes) + " bytes; a hello has at most " +
                                          std::to_string(kMostHelloBytes));
}

std::string HostOfPeer(std::string_view peer) {
  const std::size_t scheme = peer.find(':');
  const std::size_t port = peer.rfind(':');
  if (port <= scheme || !(peer.starts_with("ipv4:") || peer.starts_with("ipv6:"))) {
    return "";
  }
  std::string host(peer.substr(scheme + 1, port - scheme - 1));
  for (const std::string_view bracket : {"[", "]", "%5B", "%5D"}) {
    if (const std::size_t at = host.find(bracket); at != std::string::npos) {
      host.erase(at, bracket.size());
    }
  }
  return CanonicalAddress(host);
}

StreamGuard::StreamGuard(Limits limits) : limits_(limits), thread_([this] { Run(); }) {}

StreamGuard::~StreamGuard() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::StatusOr<std::unique_ptr<StreamGuard::Place>> StreamGuard::Enter(bool named,
                                                                       std::function<void()> end) {
  const MutexLock lock(mutex_);
  const bool full =
      named ? waiting_.size() - unnamed_ >= limits_.most_waiting : unnamed_ >= limits_.most_unnamed;
  if (full) {
    return absl::UnavailableError("too many streams have not said hello; try again");
  }
  unnamed_ += named ? 0 : 1;
  const std::uint64_t id = ++last_id_;
  waiting_[id] = {.named = named,
                  .until = std::chrono::steady_clock::now() + limits_.hello_time,
                  .end = std::move(end)};
  changed_.NotifyAll();
  return std::make_unique<Place>(*this, id);
}

void StreamGuard::Leave(std::uint64_t id) {
  const MutexLock lock(mutex_);
  const auto waiting = waiting_.find(id);
  unnamed_ -= waiting->second.named ? 0 : 1;
  waiting_.erase(waiting);
}

// A stream that was ended keeps its place until it has gone.
void StreamGuard::Run() {
  const MutexLock lock(mutex_);
  while (!stop_) {
    const TimePoint now = std::chrono::steady_clock::now();
    TimePoint next = TimePoint::max();
    for (auto& [id, waiting] : waiting_) {
      if (waiting.until <= now && waiting.end) {
        std::exchange(waiting.end, nullptr)();
      } else if (waiting.end) {
        next = waiting.until;
        break;
      }
    }
    if (next == TimePoint::max()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitFor(mutex_, next - now);
    }
  }
}

}  // namespace adamant::rpc
