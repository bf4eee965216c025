#include "operator/control/connection.h"

#include <grpcpp/server_context.h>

#include <utility>

namespace adamant::control {

void Connection::Begin(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  StartRead(&incoming_);
}

void Connection::Refuse(const grpc::Status& status, std::function<void()> on_done) {
  callbacks_.on_done = std::move(on_done);
  End(status);
}

void Connection::Push(v1::ControllerMessage message) {
  const MutexLock lock(mutex_);
  if (closed_) {
    return;
  }
  if (waiting_.size() == kMaxWaiting) {
    context_.TryCancel();
    return;
  }
  // Each says all that there is: of those that follow each other only the last matters.
  if (message.has_membership() && !waiting_.empty() && waiting_.back().has_membership()) {
    waiting_.back() = std::move(message);
  } else {
    waiting_.push_back(std::move(message));
  }
  GoOn();
}

void Connection::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  GoOn();
}

void Connection::OnReadDone(bool ok) {
  if (!ok) {
    return End(grpc::Status::OK);  // the member has gone, or has said all
  }
  const grpc::Status status = callbacks_.on_message(incoming_);
  if (!status.ok()) {
    return End(status);
  }
  StartRead(&incoming_);
}

void Connection::OnWriteDone(bool ok) {
  if (!ok) {
    End(grpc::Status::OK);
  }
  const MutexLock lock(mutex_);
  writing_ = false;
  GoOn();
}

void Connection::OnDone() {
  const auto on_done = std::move(callbacks_.on_done);
  on_done();
}

// What is queued is of no use any more.
void Connection::End(const grpc::Status& status) {
  const MutexLock lock(mutex_);
  closed_ = true;
  waiting_.clear();
  status_ = status;
  GoOn();
}

void Connection::GoOn() {
  if (writing_ || finished_) {
    return;
  }
  if (!waiting_.empty()) {
    outgoing_ = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    StartWrite(&outgoing_);
  } else if (closed_) {
    finished_ = true;
    Finish(status_);
  }
}

}  // namespace adamant::control
