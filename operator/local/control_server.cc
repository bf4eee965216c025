#include "operator/local/control_server.h"

#include <grpcpp/server_context.h>

#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "operator/local/codec.h"
#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/server.h"

namespace adamant::local {
namespace {

using controller::ConnectionId;
using Stream = grpc::ServerReaderWriter<v1::ControllerMessage, v1::MemberMessage>;

constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{64} << 20;

// Messages that may wait for one member. The controller sends few; one that takes none is stuck.
constexpr std::size_t kMaxWaiting = 4096;

// Time for a member to end a stream that the controller has closed, before it is cut.
constexpr std::chrono::seconds kGrace{1};

// What waits to be sent on one stream.
class Connection {
 public:
  explicit Connection(grpc::ServerContext& context) : context_(context) {}

  void Push(v1::ControllerMessage message) {
    MutexLock lock(mutex_);
    if (waiting_.size() == kMaxWaiting) {
      context_.TryCancel();
      return;
    }
    waiting_.push_back(std::move(message));
    changed_.NotifyAll();
  }

  // No more will be pushed; the member has a moment to leave by itself.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }

  // The member has gone.
  void ReadingEnded() {
    MutexLock lock(mutex_);
    reading_ = false;
    changed_.NotifyAll();
  }

  // Sends until either side ends the stream. On the writer's thread.
  void WriteAll(Stream& stream) {
    while (true) {
      v1::ControllerMessage message;
      {
        MutexLock lock(mutex_);
        while (reading_ && !closed_ && waiting_.empty()) {
          changed_.Wait(mutex_);
        }
        if (!reading_) {
          return;
        }
        if (waiting_.empty()) {
          AwaitEnd();
          return;
        }
        message = std::move(waiting_.front());
        waiting_.pop_front();
      }
      if (!stream.Write(message)) {
        return;
      }
    }
  }

 private:
  void AwaitEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto deadline = std::chrono::steady_clock::now() + kGrace;
    while (reading_ && std::chrono::steady_clock::now() < deadline) {
      changed_.WaitFor(mutex_, deadline - std::chrono::steady_clock::now());
    }
    if (reading_) {
      context_.TryCancel();
    }
  }

  grpc::ServerContext& context_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::ControllerMessage> waiting_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
};

class ControllerService final : public v1::Controller::Service {
 public:
  ControllerService(const v1::TrainingJob& job, const std::string& data_root, EventQueue& events)
      : events_(events) {
    *welcome_.mutable_job() = job;
    welcome_.set_data_root(data_root);
  }

  grpc::Status Attend(grpc::ServerContext* context, Stream* stream) override {
    const auto connection = std::make_shared<Connection>(*context);
    const ConnectionId id = Add(connection);
    std::jthread writer([&] { connection->WriteAll(*stream); });
    v1::MemberMessage message;
    while (stream->Read(&message)) {
      if (auto decoded = Decode(message)) {
        events_.Push(controller::Received{.connection = id, .message = *std::move(decoded)});
      }
    }
    connection->ReadingEnded();
    Remove(id);
    events_.Push(controller::Disconnected{id});
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext* /*context*/,
                         const v1::GetStatusRequest* /*request*/,
                         v1::JobStatus* reply) override {
    MutexLock lock(mutex_);
    *reply = status_;
    return grpc::Status::OK;
  }

  void Send(const controller::Send& send) {
    if (const auto connection = Find(send.connection)) {
      v1::ControllerMessage message = Encode(send.message);
      if (message.has_welcome()) {
        message.mutable_welcome()->MergeFrom(welcome_);
      }
      connection->Push(std::move(message));
    }
  }

  void Close(ConnectionId id) {
    if (const auto connection = Find(id)) {
      connection->Close();
    }
  }

  void SetReport(const controller::JobReport& report) {
    v1::JobStatus status = Encode(report);
    MutexLock lock(mutex_);
    status_ = std::move(status);
  }

 private:
  ConnectionId Add(std::shared_ptr<Connection> connection) {
    MutexLock lock(mutex_);
    connections_.emplace(++last_connection_, std::move(connection));
    return last_connection_;
  }

  void Remove(ConnectionId id) {
    MutexLock lock(mutex_);
    connections_.erase(id);
  }

  std::shared_ptr<Connection> Find(ConnectionId id) {
    MutexLock lock(mutex_);
    const auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : found->second;
  }

  // Constant after construction.
  EventQueue& events_;
  v1::Welcome welcome_;  // what all members get

  // Guarded.
  Mutex mutex_;
  ConnectionId last_connection_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ConnectionId, std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  v1::JobStatus status_ ABSL_GUARDED_BY(mutex_);
};

class GrpcControlServer final : public ControlServer {
 public:
  GrpcControlServer(const v1::TrainingJob& job, const std::string& data_root, EventQueue& events)
      : service_(job, data_root, events) {}

  absl::Status Start(const std::string& listen) {
    ADAMANT_ASSIGN_OR_RETURN(
        server_,
        rpc::StartServer(
            {.address = listen, .max_message_bytes = kMaxMessageBytes}, {&service_}, {}));
    return absl::OkStatus();
  }

  [[nodiscard]] const std::string& address() const override { return server_->address(); }
  void Send(const controller::Send& send) override { service_.Send(send); }
  void Close(ConnectionId connection) override { service_.Close(connection); }
  void SetReport(const controller::JobReport& report) override { service_.SetReport(report); }
  void Stop() override { server_->Stop(); }

 private:
  ControllerService service_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> StartControlServer(const std::string& listen,
                                                                  const v1::TrainingJob& job,
                                                                  const std::string& data_root,
                                                                  EventQueue& events) {
  auto server = std::make_unique<GrpcControlServer>(job, data_root, events);
  ADAMANT_RETURN_IF_ERROR(server->Start(listen));
  return server;
}

}  // namespace adamant::local
