#include "tests/fakes/fake_controller.h"

#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/ids.h"

namespace adamant::fakes {

class FakeController::Attendance final : public v1::Controller::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ControllerMessage, v1::MemberMessage>;

  grpc::Status Attend(grpc::ServerContext* context, Stream* stream) override {
    Begin(context, stream);
    v1::MemberMessage message;
    while (stream->Read(&message)) {
      MutexLock lock(mutex_);
      if (message.has_heartbeat()) {
        heartbeat_ = message.heartbeat();
      } else {
        received_.push_back(message);
      }
      changed_.NotifyAll();
    }
    MutexLock lock(mutex_);
    received_.push_back(std::nullopt);
    context_ = nullptr;
    stream_ = nullptr;
    changed_.NotifyAll();
    return grpc::Status::OK;
  }

  grpc::Status GetTerm(grpc::ServerContext* /*context*/,
                       const v1::GetTermRequest* /*request*/,
                       v1::Term* reply) override {
    MutexLock lock(mutex_);
    reply->set_term(term_);
    return grpc::Status::OK;
  }

  void SetTerm(std::uint64_t term) {
    MutexLock lock(mutex_);
    term_ = term;
  }

  std::optional<v1::MemberMessage> Receive() {
    MutexLock lock(mutex_);
    while (received_.empty()) {
      changed_.Wait(mutex_);
    }
    auto message = std::move(received_.front());
    received_.pop_front();
    return message;
  }

  v1::Heartbeat ReceiveHeartbeat() {
    MutexLock lock(mutex_);
    while (!heartbeat_.has_value()) {
      changed_.Wait(mutex_);
    }
    return *std::exchange(heartbeat_, std::nullopt);
  }

  void Send(const v1::ControllerMessage& message) {
    MutexLock lock(mutex_);
    ADAMANT_CHECK(stream_ != nullptr, "no member attends");
    stream_->Write(message);
  }

  void Break() {
    MutexLock lock(mutex_);
    ADAMANT_CHECK(context_ != nullptr, "no member attends");
    context_->TryCancel();
  }

 private:
  // A member comes back while its last stream is still ending.
  void Begin(grpc::ServerContext* context, Stream* stream) {
    MutexLock lock(mutex_);
    while (stream_ != nullptr) {
      changed_.Wait(mutex_);
    }
    context_ = context;
    stream_ = stream;
  }

  Mutex mutex_;
  CondVar changed_;
  grpc::ServerContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::deque<std::optional<v1::MemberMessage>> received_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Heartbeat> heartbeat_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
};

FakeController::FakeController(const std::string& address,
                               std::optional<rpc::ServerSecurity> security)
    : attendance_(std::make_unique<Attendance>()) {
  rpc::ServerOptions options;
  options.address = address;
  options.security = std::move(security);
  auto server = rpc::StartServer(options, {attendance_.get()}, {});
  ADAMANT_CHECK(server.ok(), server.status().ToString());
  server_ = *std::move(server);
}

FakeController::~FakeController() { server_->Stop(); }

std::optional<v1::MemberMessage> FakeController::Receive() { return attendance_->Receive(); }

v1::Heartbeat FakeController::ReceiveHeartbeat() { return attendance_->ReceiveHeartbeat(); }

void FakeController::Send(const v1::ControllerMessage& message) { attendance_->Send(message); }

void FakeController::Welcome(std::uint64_t term, Incarnation incarnation, std::uint64_t job_uid) {
  v1::ControllerMessage message;
  message.mutable_welcome()->set_term(term);
  message.mutable_welcome()->set_incarnation(incarnation);
  message.mutable_welcome()->set_job_uid(job_uid);
  Send(message);
}

void FakeController::SetTerm(std::uint64_t term) { attendance_->SetTerm(term); }

void FakeController::Break() { attendance_->Break(); }

}  // namespace adamant::fakes
