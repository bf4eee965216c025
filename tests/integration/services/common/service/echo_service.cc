// A service for run_service_test: repeats the epochs it is told to open.
#include <memory>
#include <string>
#include <variant>

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

  void OnMessage(const protocol::ControllerMessage& message) override {
    const auto* open = std::get_if<protocol::OpenEpoch>(&message);
    epoch_ = open != nullptr ? open->epoch : DataEpoch(0);
    drained_ = true;
    Report(epoch_);
    if (epoch_ == 99) {
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

  protocol::Heartbeat MakeHeartbeat() override {
    return {.progress = protocol::WorkerProgress{.trained_examples = 42}};
  }

  void Stop() override { Report(1000); }

 private:
  void Report(DataEpoch epoch) { context_.controller.Send(protocol::EpochEnded{epoch}); }

  const ServiceContext context_;
  DataEpoch epoch_ = 0;
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
