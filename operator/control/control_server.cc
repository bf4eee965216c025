#include "operator/control/control_server.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "operator/control/connection.h"
#include "operator/control/job_settings.h"
#include "operator/control/message_limits.h"
#include "operator/control/status_codec.h"
#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/codec/control.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::control {
namespace {

using controller::ConnectionId;

// What all that members have sent may take until it is handled. Streams are cut beyond it.
constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{24} << 20;

// A job that is served. Constant but for the status.
struct Job {
  std::string name;     // as members say it
  v1::Welcome welcome;  // what all members get
  ControlServer::Sink sink;
  v1::JobStatus status;  // guarded by the service's mutex
};

// A stream; it belongs to a job once its first message, Join, has named one.
struct Stream {
  std::unique_ptr<Connection> connection;
  std::string peer;                                // as gRPC calls it
  std::unique_ptr<rpc::StreamGuard::Place> place;  // until then
  std::shared_ptr<Job> job;
};

// The job as its members are to run it: processes but data servers need to know how long the
// schedule is in examples.
void Adapt(const controller::Welcome& welcome, v1::TrainingJob& job) {
  ScaleRates(welcome.rate_factor, welcome.layer_factors, job);
  if (welcome.training_examples > 0) {
    job::CountProgressInExamples(welcome.training_examples, welcome.schedule_epochs, job);
  }
}

class ControllerService final : public v1::Controller::CallbackService {
 public:
  // The connection of this peer has named a job that is led here.
  using Admit = std::function<void(const std::string& peer)>;

  explicit ControllerService(Admit admit) : admit_(std::move(admit)) {}

  grpc::ServerBidiReactor<v1::MemberMessage, v1::ControllerMessage>* Attend(
      grpc::CallbackServerContext* context) override {
    auto owned = std::make_unique<Connection>(*context);
    Connection* const connection = owned.get();
    auto place = LetIn(*context);
    const absl::Status let_in = place.status();
    ConnectionId id = 0;
    {
      const MutexLock lock(mutex_);
      id = ++last_connection_;
      Stream& stream = streams_[id];
      stream.connection = std::move(owned);
      stream.peer = context->peer();
      stream.place = let_in.ok() ? *std::move(place) : nullptr;
    }
    if (!let_in.ok()) {
      connection->Refuse(rpc::ToGrpc(let_in), [this, id] { Remove(id); });
      return connection;
    }
    connection->Begin(
        {.on_message = [this, id](const v1::MemberMessage& message) { return Take(id, message); },
         .on_done = [this, id] { Remove(id); }});
    return connection;
  }

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::JobStatus* reply) override {
    return Answer(*context, request->job(), [&](const v1::JobStatus& status) { *reply = status; });
  }

  grpc::ServerUnaryReactor* GetTerm(grpc::CallbackServerContext* context,
                                    const v1::GetTermRequest* request,
                                    v1::Term* reply) override {
    return Answer(*context, request->job(), [&](const v1::JobStatus& status) {
      reply->set_term(status.term());
    });
  }

  void AddJob(std::shared_ptr<Job> job) {
    const MutexLock lock(mutex_);
    jobs_[job->name] = std::move(job);
  }

  void RemoveJob(const std::string& name) {
    const MutexLock lock(mutex_);
    jobs_.erase(name);
    for (const auto& [id, stream] : streams_) {
      if (stream.job != nullptr && stream.job->name == name) {
        stream.connection->Close();
      }
    }
  }

  void Send(const controller::Send& send) {
    v1::ControllerMessage message = codec::Encode(send.message);
    const MutexLock lock(mutex_);
    if (const auto stream = streams_.find(send.connection); stream != streams_.end()) {
      if (message.has_welcome() && stream->second.job != nullptr) {
        message.mutable_welcome()->MergeFrom(stream->second.job->welcome);
        Adapt(std::get<controller::Welcome>(send.message),
              *message.mutable_welcome()->mutable_job());
      }
      stream->second.connection->Push(std::move(message));
    }
  }

  void Close(ConnectionId id) {
    const MutexLock lock(mutex_);
    if (const auto stream = streams_.find(id); stream != streams_.end()) {
      stream->second.connection->Close();
    }
  }

  void SetReport(const std::string& name, const controller::JobReport& report) {
    v1::JobStatus status = Encode(report);
    const MutexLock lock(mutex_);
    if (const auto job = jobs_.find(name); job != jobs_.end()) {
      job->second->status = std::move(status);
    }
  }

 private:
  static grpc::Status NotLed(const std::string& job) {
    return {grpc::StatusCode::UNAVAILABLE, "this controller does not lead job \"" + job + "\""};
  }

  // Answers out of the latest status of a job.
  template <class Fill>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext& context,
                                   const std::string& name,
                                   const Fill& fill) {
    grpc::Status outcome;
    {
      const MutexLock lock(mutex_);
      if (const auto job = jobs_.find(name); job != jobs_.end()) {
        fill(job->second->status);
      } else {
        outcome = NotLed(name);
      }
    }
    if (outcome.ok()) {
      admit_(context.peer());
    }
    grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
    reactor->Finish(outcome);
    return reactor;
  }

  // Who names a job that is not led here is refused before anything of the stream is read.
  absl::StatusOr<std::unique_ptr<rpc::StreamGuard::Place>> LetIn(
      grpc::CallbackServerContext& context) {
    const auto said = context.client_metadata().find(rpc::kJobKey);
    const bool named = said != context.client_metadata().end();
    if (named) {
      const std::string job(said->second.data(), said->second.size());
      const MutexLock lock(mutex_);
      if (!jobs_.contains(job)) {
        return rpc::FromGrpc(NotLed(job));
      }
    }
    auto place = guard_.Enter(named, [&context] { context.TryCancel(); });
    if (named && place.ok()) {
      admit_(context.peer());
    }
    return place;
  }

  grpc::Status Take(ConnectionId id, const v1::MemberMessage& message) {
    if (const absl::Status status = CheckBytes(message); !status.ok()) {
      return rpc::ToGrpc(status);
    }
    auto decoded = codec::Decode(message);
    if (!decoded) {
      return grpc::Status::OK;
    }
    std::shared_ptr<Job> job;
    std::unique_ptr<rpc::StreamGuard::Place> place;  // given back without the lock
    std::string peer;
    {
      const MutexLock lock(mutex_);
      Stream& stream = streams_.at(id);
      if (stream.job == nullptr) {
        if (!message.has_join()) {
          return {grpc::StatusCode::INVALID_ARGUMENT, "the first message must be Join"};
        }
        const auto named = jobs_.find(message.join().job());
        if (named == jobs_.end()) {
          return NotLed(message.join().job());
        }
        stream.job = named->second;
        place = std::move(stream.place);
        peer = stream.peer;
      }
      if (auto* join = std::get_if<controller::Join>(&*decoded)) {
        join->peer = rpc::HostOfPeer(stream.peer);
      }
      job = stream.job;
    }
    if (place != nullptr) {
      admit_(peer);  // one of an earlier state names its job only now
    }
    job->sink(controller::Received{.connection = id, .message = *std::move(decoded)});
    return grpc::Status::OK;
  }

  void Remove(ConnectionId id) {
    Stream stream;
    {
      const MutexLock lock(mutex_);
      stream = std::move(streams_.extract(id).mapped());
    }
    if (stream.job != nullptr) {
      stream.job->sink(controller::Disconnected{id});
    }
  }

  const Admit admit_;
  rpc::StreamGuard guard_{{.most_waiting = 1024, .most_unnamed = 1}};
  Mutex mutex_;  // taken before those of the connections
  ConnectionId last_connection_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ConnectionId, Stream> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
};

class GrpcControlServer final : public ControlServer {
 public:
  absl::Status Start(const std::string& listen) {
    ADAMANT_ASSIGN_OR_RETURN(server_,
                             rpc::StartServer({.address = listen,
                                               .max_message_bytes = kMostMessageBytes,
                                               .max_memory_bytes = kMaxMemoryBytes,
                                               .has_door = true},
                                              {&service_},
                                              {}));
    return absl::OkStatus();
  }

  [[nodiscard]] const std::string& address() const override { return server_->address(); }
  void AddJob(const std::string& job,
              const v1::TrainingJob& spec,
              const std::string& data_root,
              Sink sink) override {
    auto served = std::make_shared<Job>();
    served->name = job;
    *served->welcome.mutable_job() = spec;
    served->welcome.set_data_root(data_root);
    served->sink = std::move(sink);
    service_.AddJob(std::move(served));
  }
  void RemoveJob(const std::string& job) override { service_.RemoveJob(job); }
  void Send(const controller::Send& send) override { service_.Send(send); }
  void Close(ConnectionId connection) override { service_.Close(connection); }
  void SetReport(const std::string& job, const controller::JobReport& report) override {
    service_.SetReport(job, report);
  }
  void Stop() override { server_->Stop(); }

 private:
  ControllerService service_{[this](const std::string& peer) { server_->Admit(peer); }};
  std::unique_ptr<rpc::Server> server_;  // set before there is a job that could be named
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> StartControlServer(const std::string& listen) {
  auto server = std::make_unique<GrpcControlServer>();
  ADAMANT_RETURN_IF_ERROR(server->Start(listen));
  return server;
}

}  // namespace adamant::control
