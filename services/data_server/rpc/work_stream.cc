#include "services/data_server/rpc/work_stream.h"

#include <span>
#include <utility>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/data_server/rpc/message_codec.h"

namespace adamant::data_server {
namespace {

// Above the largest window and its answers.
constexpr std::size_t kMaxQueuedMessages = 262144;

}  // namespace

void WorkStream::AnswerHello(const std::string& refused, const Normalisation& normalisation) {
  v1::WorkReply reply;
  v1::WorkHelloReply& hello = *reply.mutable_hello();
  hello.set_refused(refused);
  hello.mutable_mean()->Assign(normalisation.mean.begin(), normalisation.mean.end());
  hello.mutable_deviation()->Assign(normalisation.deviation.begin(), normalisation.deviation.end());
  Push(reply.SerializeAsString());
  MutexLock lock(mutex_);
  admitted_ = refused.empty();
  changed_.NotifyAll();
}

bool WorkStream::AwaitAdmission() {
  MutexLock lock(mutex_);
  while (!admitted_ && !closed_) {
    changed_.Wait(mutex_);
  }
  return admitted_.value_or(false);
}

void WorkStream::Push(Message message) {
  {
    MutexLock lock(mutex_);
    if (closed_) {
      return;
    }
    if (queue_.size() < kMaxQueuedMessages) {
      queue_.push_back(std::move(message));
      changed_.NotifyAll();
      return;
    }
  }
  LogWarning("a worker does not read: its stream is cut off");
  Cancel();
}

void WorkStream::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

void WorkStream::Cancel() {
  MutexLock lock(mutex_);
  closed_ = true;
  queue_.clear();
  changed_.NotifyAll();
  if (!detached_) {
    stream_.Cancel();
  }
}

void WorkStream::Detach() {
  MutexLock lock(mutex_);
  closed_ = true;
  detached_ = true;
}

std::optional<WorkStream::Message> WorkStream::Next() {
  MutexLock lock(mutex_);
  while (queue_.empty() && !closed_) {
    changed_.Wait(mutex_);
  }
  if (queue_.empty()) {
    return std::nullopt;
  }
  Message message = std::move(queue_.front());
  queue_.pop_front();
  return message;
}

rpc::OutgoingFrame WorkStream::FrameOf(const Dispatch& dispatch) {
  PreparedBatch batch = pipeline_.Take(dispatch.lease.batch);
  v1::WorkReply reply = ToProto(dispatch);
  reply.mutable_batch()->mutable_labels()->Assign(batch.labels.begin(), batch.labels.end());
  metrics_.sent_bytes.Increment(static_cast<double>(batch.images.size()));
  return {.header = reply.SerializeAsString(),
          .payload = {{.bytes = std::as_bytes(batch.images), .owner = std::move(batch.owner)}}};
}

absl::Status WorkStream::Run() {
  while (std::optional<Message> message = Next()) {
    const Dispatch* dispatch = std::get_if<Dispatch>(&*message);
    ADAMANT_RETURN_IF_ERROR(stream_.Write(
        dispatch != nullptr ? FrameOf(*dispatch)
                            : rpc::OutgoingFrame{std::get<std::string>(*message), {}}));
  }
  return absl::OkStatus();
}

}  // namespace adamant::data_server
