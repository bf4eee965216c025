#include "services/parameter_server/rpc/peers/peer_stream.h"

#include <span>
#include <utility>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/base/checksum.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/rpc/messages/message_batch.h"

namespace adamant::parameter_server {
namespace {

// Large enough that what a message batch costs by itself does not matter, small enough that the
// receiver works on one while the next is on its way.
constexpr std::uint64_t kMessageBatchBytes = std::uint64_t{4} << 20;

}  // namespace

PeerStream::PeerStream(Options options, const PeerMetrics& metrics)
    : options_(std::move(options)), metrics_(metrics), thread_([this] { Run(); }) {}

PeerStream::~PeerStream() { Stop(); }

void PeerStream::Send(PeerMessage message) {
  const std::uint64_t bytes = BytesOf(message);
  const MutexLock lock(mutex_);
  if (!open_ || (!queue_.empty() && queued_bytes_ + bytes > kMaxQueuedBytes)) {
    return;
  }
  metrics_.sent[message.kind.index()].Increment();
  queued_bytes_ += bytes;
  queue_.push_back(std::move(message));
  if (queue_.size() == 1) {  // else the thread is awake
    changed_.NotifyAll();
  }
}

bool PeerStream::IsOpen() const {
  const MutexLock lock(mutex_);
  return open_;
}

void PeerStream::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  if (stream_ != nullptr) {
    stream_->Cancel();
  }
  changed_.NotifyAll();
}

void PeerStream::Run() {
  Backoff backoff(options_.backoff, Checksum(std::as_bytes(std::span(options_.name))));
  do {
    const std::unique_ptr<rpc::FrameStream> stream = options_.connect();
    if (!Begin(*stream)) {
      return;
    }
    const absl::Status status = Serve(*stream, backoff);
    SetOpen(false);
    Report(status);
  } while (Pause(backoff.Next()));
}

// False when it is to stop.
bool PeerStream::Begin(rpc::FrameStream& stream) {
  const MutexLock lock(mutex_);
  stream_ = stopped_ ? nullptr : &stream;
  return !stopped_;
}

absl::Status PeerStream::Serve(rpc::FrameStream& stream, Backoff& backoff) {
  ADAMANT_RETURN_IF_ERROR(Greet(stream));
  backoff.Reset();
  SetOpen(true);
  if (std::exchange(away_, false)) {
    LogInfo("peer reachable again", {{"stream", options_.name}});
  }
  options_.on_open();
  // The peer says nothing more: when this wait ends, so has the stream.
  absl::Status end;
  {
    const std::jthread watcher([&] {
      end = stream.Read().status();
      SetOpen(false);
    });
    SendAll(stream);
    stream.Cancel();
  }
  return end.ok() ? absl::InternalError("the peer sent more than its hello") : end;
}

absl::Status PeerStream::Greet(rpc::FrameStream& stream) const {
  ADAMANT_RETURN_IF_ERROR(stream.Write({.header = options_.hello, .payload = {}}));
  ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame frame, stream.Read());
  v1::ReplicationHelloReply reply;
  if (!reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InternalError("the peer's answer is no ReplicationHelloReply");
  }
  return reply.refused().empty() ? absl::OkStatus()
                                 : absl::FailedPreconditionError(reply.refused());
}

// Until the stream is broken or to be stopped.
void PeerStream::SendAll(rpc::FrameStream& stream) {
  std::vector<PeerMessage> messages = Take();
  while (!messages.empty()) {
    rpc::OutgoingFrame message_batch = EncodeMessageBatch(messages);
    std::uint64_t bytes = message_batch.header.size();
    for (const rpc::LentBytes& piece : message_batch.payload) {
      bytes += piece.bytes.size();
    }
    if (!stream.Write(std::move(message_batch)).ok()) {
      return;  // the watcher learns why
    }
    metrics_.sent_bytes.Increment(static_cast<double>(bytes));
    messages = Take();
  }
}

// What goes into the next message batch; nothing when the stream has ended.
std::vector<PeerMessage> PeerStream::Take() {
  const MutexLock lock(mutex_);
  while (open_ && !stopped_ && queue_.empty()) {
    changed_.Wait(mutex_);
  }
  std::vector<PeerMessage> messages;
  std::uint64_t bytes = 0;
  while (open_ && !stopped_ && !queue_.empty() && messages.size() < kMaxMessageBatchMessages) {
    const std::uint64_t next = BytesOf(queue_.front());
    if (!messages.empty() && bytes + next > kMessageBatchBytes) {
      break;
    }
    bytes += next;
    queued_bytes_ -= next;
    messages.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return messages;
}

void PeerStream::SetOpen(bool open) {
  std::deque<PeerMessage> dropped;  // its payload is let go without the lock
  const MutexLock lock(mutex_);
  open_ = open;
  queued_bytes_ = 0;
  dropped.swap(queue_);
  changed_.NotifyAll();
}

void PeerStream::Report(const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    stream_ = nullptr;
    if (stopped_) {
      return;
    }
  }
  if (!std::exchange(away_, true)) {
    LogWarning("peer unreachable, trying on",
               {{"stream", options_.name}, {"why", std::string(status.message())}});
  }
}

// False when it is to stop.
bool PeerStream::Pause(std::chrono::milliseconds time) {
  const MutexLock lock(mutex_);
  if (!stopped_) {
    changed_.WaitFor(mutex_, time);
  }
  return !stopped_;
}

}  // namespace adamant::parameter_server
