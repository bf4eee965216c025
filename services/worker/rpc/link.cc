#include "services/worker/rpc/link.h"

#include <chrono>
#include <optional>
#include <utility>

#include "services/common/base/backoff.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/worker/rpc/stream_endings.h"

namespace adamant::worker {
namespace {

using std::chrono::steady_clock;

// A server that loads its data or starts again should not then wait for its workers.
constexpr std::chrono::milliseconds kLongestWait{500};

}  // namespace

Link::Link(LinkOptions options, LinkHandlers handlers)
    : options_(std::move(options)),
      handlers_(std::move(handlers)),
      reader_([this] { ReadLoop(); }),
      writer_([this] { WriteLoop(); }) {}

Link::~Link() { Stop(); }

void Link::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  if (stream_ != nullptr) {
    stream_->Cancel();
  }
  changed_.NotifyAll();
}

void Link::Send(rpc::OutgoingFrame frame) {
  MutexLock lock(mutex_);
  if (connected_) {
    outbox_.push_back(std::move(frame));
    changed_.NotifyAll();
  }
}

bool Link::Idle() {
  MutexLock lock(mutex_);
  return outbox_.empty() && !writing_;
}

void Link::ReadLoop() {
  Backoff backoff({.max = kLongestWait}, options_.seed);
  StreamEndings endings;
  for (;;) {
    std::shared_ptr<rpc::FrameStream> stream = rpc::OpenFrameStream(options_.address,
                                                                    options_.method,
                                                                    options_.max_message_bytes,
                                                                    {},
                                                                    options_.job,
                                                                    options_.security.get());
    {
      MutexLock lock(mutex_);
      if (stopped_) {
        return;
      }
      stream_ = stream;
    }
    const absl::Status status = ServeStream(*stream);
    MutexLock lock(mutex_);
    const auto lasted =
        connected_ ? steady_clock::now() - connected_at_ : steady_clock::duration(0);
    const std::optional<LogLevel> told = endings.OnEnd(lasted);
    if (endings.row() == 1) {
      backoff.Reset();
    }
    connected_ = false;
    stream_.reset();
    outbox_.clear();
    if (stopped_) {
      return;
    }
    if (told.has_value()) {
      Log(*told,
          "stream ended",
          {{"server", options_.address},
           {"method", options_.method},
           {"status", status.ToString()},
           {"in a row", endings.row()}});
    }
    changed_.WaitFor(mutex_, backoff.Next());
  }
}

absl::Status Link::ServeStream(rpc::FrameStream& stream) {
  ADAMANT_RETURN_IF_ERROR(stream.Write({.header = options_.hello, .payload = {}}));
  ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame hello, stream.Read());
  ADAMANT_RETURN_IF_ERROR(handlers_.on_hello(hello));
  {
    MutexLock lock(mutex_);
    connected_ = true;
    connected_at_ = steady_clock::now();
  }
  handlers_.on_change(true);
  absl::Status status;
  while (status.ok()) {
    absl::StatusOr<rpc::IncomingFrame> frame = stream.Read();
    status = frame.ok() ? handlers_.on_frame(*std::move(frame)) : frame.status();
  }
  stream.Cancel();
  handlers_.on_change(false);
  return status;
}

void Link::WriteLoop() {
  for (;;) {
    rpc::OutgoingFrame frame;
    std::shared_ptr<rpc::FrameStream> stream;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      while (!stopped_ && outbox_.empty()) {
        changed_.Wait(mutex_);
      }
      if (stopped_) {
        return;
      }
      frame = std::move(outbox_.front());
      outbox_.pop_front();
      stream = stream_;
      writing_ = true;
    }
    if (stream != nullptr && !stream->Write(std::move(frame)).ok()) {
      stream->Cancel();  // the reader says why, and opens another
    }
  }
}

}  // namespace adamant::worker
