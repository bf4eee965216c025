#include "operator/control/control_server.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "operator/control/connection.h"
#include "operator/control/job_settings.h"
#include "operator/control/member_identity.h"
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
#include "services/common/rpc/tls/certified_calls.h"
#include "services/common/rpc/tls/server_security.h"
#include "services/common/security/peer_identity.h"

namespace adamant::control {
namespace {

using controller::ConnectionId;

// What all that members have sent may take until it is handled. Streams are cut beyond it.
constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{24} << 20;

// A job that is served. Constant but for the status.
struct Job {
  std::string name;  // as members say it
  StreamSecurity security = StreamSecurity::kPlain;
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
  std::unique_ptr<rpc::CertifiedCalls::Call> call{};  // null: without TLS
};

// By its certificate; null: it came without TLS.
const security::PeerIdentity* IdentityOf(const std::unique_ptr<rpc::CertifiedCalls::Call>& call) {
  return call == nullptr ? nullptr : &call->client().identity;
}

// Who comes by the way of another job's members, or with the certificate of another job.
absl::Status CheckWay(const Job& job, const security::PeerIdentity* identity) {
  if ((identity != nullptr) != (job.security == StreamSecurity::kTls)) {
    return absl::PermissionDeniedError(identity != nullptr ? "this job's processes do without TLS"
                                                           : "this job's processes use TLS");
  }
  const bool is_of_a_job = identity != nullptr && identity->role != security::Role::kOperator;
  return is_of_a_job && identity->job_uid != job.name
             ? absl::PermissionDeniedError("the certificate is of another job")
             : absl::OkStatus();
}

// The job as its members are to run it: processes but data servers need to know how long the
// schedule is in examples.
void Adapt(const controller::Welcome& welcome, v1::TrainingJob& job) {
  ScaleRates(welcome.rate_factor, welcome.layer_factors, job);
  if (welcome.training_examples > 0) {
    job::CountProgressInExamples(welcome.training_examples, welcome.schedule_epochs, job);
  }
}

// Serves the calls of all listeners.
class ControllerService final {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::MemberMessage, v1::ControllerMessage>;

  // The connection of this peer has named a job that is led here.
  using Admit = std::function<void(const std::string& peer)>;

  explicit ControllerService(Admit admit) : admit_(std::move(admit)) {}

  // Before there are streams by TLS.
  void SetOnMismatch(std::function<void(Mismatch)> on_mismatch) {
    on_mismatch_ = std::move(on_mismatch);
  }

  // `certified`, here and below: of the listener; null: its clients have no certificates.
  Reactor* Attend(grpc::CallbackServerContext* context, rpc::CertifiedCalls* certified) {
    Stream entered{.connection = std::make_unique<Connection>(*context),
                   .peer = context->peer(),
                   .place = nullptr,
                   .job = nullptr};
    Connection* const connection = entered.connection.get();
    const absl::Status let_in = Enter(*context, certified, entered);
    ConnectionId id = 0;
    {
      const MutexLock lock(mutex_);
      id = ++last_connection_;
      streams_.emplace(id, std::move(entered));
    }
    if (!let_in.ok()) {
      connection->Refuse(rpc::ToGrpc(let_in), [this, id] { Remove(id); });
      return connection;
    }
    connection->Begin(
        {.on_message = [this, id](const v1::MemberMessage& message) { return Take(id, message); },
         .on_done = [this, id] { Remove(id); }});
    return connection;
  }  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): streams_ owns the connection

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      rpc::CertifiedCalls* certified,
                                      const v1::GetStatusRequest* request,
                                      v1::JobStatus* reply) {
    return Answer(
        *context, certified, request->job(), [&](const v1::JobStatus& status) { *reply = status; });
  }

  grpc::ServerUnaryReactor* GetTerm(grpc::CallbackServerContext* context,
                                    rpc::CertifiedCalls* certified,
                                    const v1::GetTermRequest* request,
                                    v1::Term* reply) {
    return Answer(*context, certified, request->job(), [&](const v1::JobStatus& status) {
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

  static absl::StatusOr<std::unique_ptr<rpc::CertifiedCalls::Call>> Certify(
      grpc::CallbackServerContext& context, rpc::CertifiedCalls* certified) {
    if (certified == nullptr) {
      return nullptr;
    }
    return certified->Enter(context);
  }

  // Answers out of the latest status of a job.
  template <class Fill>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext& context,
                                   rpc::CertifiedCalls* certified,
                                   const std::string& name,
                                   const Fill& fill) {
    const absl::Status outcome = Find(context, certified, name, fill);
    if (outcome.ok()) {
      admit_(context.peer());
    }
    grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
    reactor->Finish(rpc::ToGrpc(outcome));
    return reactor;
  }

  template <class Fill>
  absl::Status Find(grpc::CallbackServerContext& context,
                    rpc::CertifiedCalls* certified,
                    const std::string& name,
                    const Fill& fill) {
    ADAMANT_ASSIGN_OR_RETURN(const auto call, Certify(context, certified));
    const MutexLock lock(mutex_);
    const auto job = jobs_.find(name);
    ADAMANT_RETURN_IF_ERROR(job == jobs_.end() ? rpc::FromGrpc(NotLed(name))
                                               : CheckWay(*job->second, IdentityOf(call)));
    fill(job->second->status);
    return absl::OkStatus();
  }

  // Who names a job that is not led here is refused before anything of the stream is read.
  absl::Status Enter(grpc::CallbackServerContext& context,
                     rpc::CertifiedCalls* certified,
                     Stream& stream) {
    ADAMANT_ASSIGN_OR_RETURN(stream.call, Certify(context, certified));
    const auto said = context.client_metadata().find(rpc::kJobKey);
    const bool named = said != context.client_metadata().end();
    if (named) {
      const std::string job(said->second.data(), said->second.size());
      const MutexLock lock(mutex_);
      const auto found = jobs_.find(job);
      ADAMANT_RETURN_IF_ERROR(found == jobs_.end()
                                  ? rpc::FromGrpc(NotLed(job))
                                  : CheckWay(*found->second, IdentityOf(stream.call)));
    }
    ADAMANT_ASSIGN_OR_RETURN(stream.place,
                             guard_.Enter(named, [&context] { context.TryCancel(); }));
    if (named) {
      admit_(context.peer());
    }
    return absl::OkStatus();
  }

  // Whether a member is who its Join says.
  absl::Status CheckJoin(const Job& job, const Stream& stream, const v1::Join& join) const {
    const security::PeerIdentity* const identity = IdentityOf(stream.call);
    ADAMANT_RETURN_IF_ERROR(CheckWay(job, identity));
    const Mismatch mismatch = identity != nullptr ? Compare(join, *identity) : Mismatch::kNone;
    if (mismatch == Mismatch::kNone) {
      return absl::OkStatus();
    }
    if (on_mismatch_) {
      on_mismatch_(mismatch);
    }
    return absl::PermissionDeniedError("Join says another " + FieldName(mismatch) +
                                       " than the certificate");
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
        if (const absl::Status is_its = CheckJoin(*named->second, stream, message.join());
            !is_its.ok()) {
          return rpc::ToGrpc(is_its);
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
  std::function<void(Mismatch)> on_mismatch_;
  rpc::StreamGuard guard_{{.most_waiting = 1024, .most_unnamed = 1}};
  Mutex mutex_;  // taken before those of the connections
  ConnectionId last_connection_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ConnectionId, Stream> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
};

// What gRPC serves at one listener.
class Front final : public v1::Controller::CallbackService {
 public:
  // Both must outlive this.
  Front(ControllerService& service, rpc::CertifiedCalls* certified)
      : service_(service), certified_(certified) {}

  ControllerService::Reactor* Attend(grpc::CallbackServerContext* context) override {
    return service_.Attend(context, certified_);
  }
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::JobStatus* reply) override {
    return service_.GetStatus(context, certified_, request, reply);
  }
  grpc::ServerUnaryReactor* GetTerm(grpc::CallbackServerContext* context,
                                    const v1::GetTermRequest* request,
                                    v1::Term* reply) override {
    return service_.GetTerm(context, certified_, request, reply);
  }

 private:
  ControllerService& service_;
  rpc::CertifiedCalls* const certified_;
};

class GrpcControlServer final : public ControlServer {
 public:
  ~GrpcControlServer() override { Stop(); }

  absl::Status Start(const std::string& listen) {
    ADAMANT_ASSIGN_OR_RETURN(server_, rpc::StartServer(OptionsAt(listen), {&front_}, {}));
    return absl::OkStatus();
  }

  absl::Status Listen(const SecuredListener& listener) override {
    service_.SetOnMismatch(listener.on_mismatch);
    certified_calls_.emplace(listener.security.grace);
    secured_front_.emplace(service_, &*certified_calls_);
    rpc::ServerOptions options = OptionsAt(listener.address);
    options.security = listener.security;
    const MutexLock lock(mutex_);  // Admit waits for it
    ADAMANT_ASSIGN_OR_RETURN(secured_server_, rpc::StartServer(options, {&*secured_front_}, {}));
    return absl::OkStatus();
  }

  [[nodiscard]] const std::string& address() const override { return server_->address(); }
  [[nodiscard]] std::string secured_address() const override {
    const MutexLock lock(mutex_);
    return secured_server_ == nullptr ? "" : secured_server_->address();
  }
  void AddJob(const std::string& job,
              StreamSecurity security,
              const v1::TrainingJob& spec,
              const std::string& data_root,
              Sink sink) override {
    auto served = std::make_shared<Job>();
    served->name = job;
    served->security = security;
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
  void Stop() override {
    if (server_ != nullptr) {
      server_->Stop();
    }
    if (const auto secured = secured_server(); secured != nullptr) {
      secured->Stop();
    }
  }

 private:
  static rpc::ServerOptions OptionsAt(const std::string& address) {
    return {.address = address,
            .max_message_bytes = kMostMessageBytes,
            .max_memory_bytes = kMaxMemoryBytes,
            .has_door = true};
  }

  // Whichever listener it came to.
  void Admit(const std::string& peer) {
    server_->Admit(peer);
    if (const auto secured = secured_server(); secured != nullptr) {
      secured->Admit(peer);
    }
  }

  std::shared_ptr<rpc::Server> secured_server() const {
    const MutexLock lock(mutex_);
    return secured_server_;
  }

  std::optional<rpc::CertifiedCalls> certified_calls_;  // none: it does not listen for TLS
  ControllerService service_{[this](const std::string& peer) { Admit(peer); }};
  Front front_{service_, nullptr};
  std::optional<Front> secured_front_;   // as certified_calls_
  std::unique_ptr<rpc::Server> server_;  // set before there is a job that could be named

  mutable Mutex mutex_;
  std::shared_ptr<rpc::Server> secured_server_ ABSL_GUARDED_BY(mutex_);  // null: none
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> StartControlServer(const std::string& listen) {
  auto server = std::make_unique<GrpcControlServer>();
  ADAMANT_RETURN_IF_ERROR(server->Start(listen));
  return server;
}

}  // namespace adamant::control
