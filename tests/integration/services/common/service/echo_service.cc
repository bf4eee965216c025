// A service for run_service_test: repeats the epochs it is told to open.
#include <memory>
#include <string>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/service/service.h"

namespace adamant::service {
namespace {

class EchoService final : public Service {
 public:
  explicit EchoService(const ServiceContext& context) : context_(context) {}

  Endpoints GetEndpoints() override {
    const auto serve = [](rpc::FrameStream& stream) { return stream.Read().status(); };
    return {
        .frame_methods = {{"/adamant.test/Stream", serve},
                          {"/adamant.v1.DataServer/Work", serve}}};  // for who has a certificate
  }

  absl::Status Start(const v1::Welcome& welcome) override {
    if (welcome.job_uid() == 13) {
      return absl::DataLossError("job 13 cannot start");
    }
    return absl::OkStatus();
  }

  void OnMessage(const v1::ControllerMessage& message) override {
    epoch_ = message.open_epoch().epoch();
    drained_ = true;
    Report(message.open_epoch().epoch());
    if (message.open_epoch().epoch() == 99) {
      context_.controller.Fail(absl::InternalError("epoch 99 failed"), /*fatal=*/false);
    }
  }

  void OnRejoined() override { Report(2000); }

  // Of epoch 50 on it has something to hand over, until the next message.
  void BeginDrain() override {
    drained_ = epoch_ < 50;
    if (!drained_) {
      Report(3000);
    }
  }

  bool Drained() override { return drained_; }

  void FillHeartbeat(v1::Heartbeat& heartbeat) override {
    heartbeat.mutable_worker()->set_trained_examples(42);
  }

  void Stop() override { Report(1000); }

 private:
  void Report(std::uint64_t epoch) {
    v1::MemberMessage message;
    message.mutable_epoch_ended()->set_epoch(epoch);
    context_.controller.Send(message);
  }

  const ServiceContext context_;
  std::uint64_t epoch_ = 0;
  bool drained_ = false;
};

}  // namespace
}  // namespace adamant::service

int main(int argc, char** argv) {
  using adamant::service::EchoService;
  return adamant::service::RunService(
      argc,
      argv,
      adamant::v1::DATA_SERVER,
      [](const adamant::service::ServiceContext& context)
          -> absl::StatusOr<std::unique_ptr<adamant::service::Service>> {
        if (context.flags.slot == 77) {
          return absl::InvalidArgumentError("no such slot");
        }
        return std::make_unique<EchoService>(context);
      });
}
