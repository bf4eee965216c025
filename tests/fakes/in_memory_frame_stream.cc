#include "tests/fakes/in_memory_frame_stream.h"

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/rpc/wire.h"

namespace adamant::fakes {
namespace {

std::string Serialize(const rpc::OutgoingFrame& frame) {
  std::string message = rpc::EncodeFront(frame.header);
  for (const rpc::LentBytes& piece : frame.payload) {
    message.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
  }
  return message;
}

absl::StatusOr<rpc::IncomingFrame> Parse(std::string message, std::size_t chunk_bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(message));
  std::vector<std::span<const std::byte>> pieces;
  auto rest = std::as_bytes(std::span(*owner));
  while (!rest.empty()) {
    const std::size_t bytes = std::min(chunk_bytes, rest.size());
    pieces.push_back(rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  return rpc::DecodeFrame(std::move(pieces), owner);
}

}  // namespace

enum Side { kClient = 0, kServer = 1 };

struct InMemoryLink::State {
  explicit State(InMemoryLinkOptions o) : options(o) {}

  const InMemoryLinkOptions options;

  struct Direction {
    std::deque<std::string> messages;
    std::uint64_t bytes = 0;
    std::optional<absl::Status> end;  // once `messages` are read
  };

  Mutex mutex;
  CondVar changed;
  Direction from[2] ABSL_GUARDED_BY(mutex);
  absl::Status broken ABSL_GUARDED_BY(mutex);  // OK: it is not

  absl::StatusOr<std::string> Take(Direction& direction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (broken.ok() && direction.messages.empty() && !direction.end.has_value()) {
      changed.Wait(mutex);
    }
    if (!broken.ok()) {
      return broken;
    }
    if (direction.messages.empty()) {
      return *direction.end;
    }
    std::string message = std::move(direction.messages.front());
    direction.messages.pop_front();
    direction.bytes -= message.size();
    changed.NotifyAll();
    return message;
  }

  void Break(const absl::Status& status) {
    MutexLock lock(mutex);
    if (broken.ok()) {
      broken = status;
    }
    changed.NotifyAll();
  }

  void End(Side side, const absl::Status& status) {
    MutexLock lock(mutex);
    if (!from[side].end.has_value()) {
      from[side].end = status;
    }
    changed.NotifyAll();
  }
};

class InMemoryLink::End final : public rpc::FrameStream {
 public:
  End(std::shared_ptr<State> state, Side side) : state_(std::move(state)), side_(side) {}

  ~End() override {
    if (side_ == kClient) {
      Cancel();
    } else {
      state_->End(kServer, absl::OutOfRangeError("end of the stream"));
    }
  }

  absl::StatusOr<rpc::IncomingFrame> Read() override {
    absl::StatusOr<std::string> message;
    {
      MutexLock lock(state_->mutex);
      message = state_->Take(state_->from[1 - side_]);
    }
    if (!message.ok()) {
      return message.status();
    }
    return Parse(*std::move(message), state_->options.chunk_bytes);
  }

  absl::Status Write(rpc::OutgoingFrame frame) override {
    std::string message = Serialize(frame);
    if (message.size() > state_->options.max_message_bytes) {
      state_->Break(absl::ResourceExhaustedError("message larger than the receiver takes"));
    }
    MutexLock lock(state_->mutex);
    State::Direction& direction = state_->from[side_];
    const State::Direction& other = state_->from[1 - side_];
    const auto finished = [&] { return side_ == kClient && other.end.has_value(); };
    while (state_->broken.ok() && !finished() && direction.bytes > state_->options.window_bytes) {
      state_->changed.Wait(state_->mutex);
    }
    if (!state_->broken.ok() || finished()) {
      return absl::UnavailableError("the stream is broken");
    }
    direction.bytes += message.size();
    direction.messages.push_back(std::move(message));
    state_->changed.NotifyAll();
    return absl::OkStatus();
  }

  void CloseWrites() override {
    if (side_ == kClient) {
      state_->End(kClient, absl::OutOfRangeError("end of the stream"));
    }
  }

  void Cancel() override { state_->Break(absl::CancelledError("the stream was cancelled")); }

  [[nodiscard]] bool Cancelled() override {
    MutexLock lock(state_->mutex);
    return !state_->broken.ok();
  }

 private:
  const std::shared_ptr<State> state_;
  const Side side_;
};

InMemoryLink::InMemoryLink(InMemoryLinkOptions options)
    : state_(std::make_shared<State>(options)),
      client_(std::make_unique<End>(state_, kClient)),
      server_(std::make_unique<End>(state_, kServer)) {}

void InMemoryLink::SendRaw(std::string message) {
  MutexLock lock(state_->mutex);
  state_->from[kClient].bytes += message.size();
  state_->from[kClient].messages.push_back(std::move(message));
  state_->changed.NotifyAll();
}

void InMemoryLink::Finish(const absl::Status& status) {
  state_->End(kServer, status.ok() ? absl::OutOfRangeError("end of the stream") : status);
}

std::pair<std::unique_ptr<rpc::FrameStream>, std::unique_ptr<rpc::FrameStream>>
MakeInMemoryFrameStreamPair(InMemoryLinkOptions options) {
  InMemoryLink link(options);
  return {link.TakeClient(), link.TakeServer()};
}

}  // namespace adamant::fakes
