// process_load: takes the place of a worker and, instead of training, pushes updates whose effect
// is known (load_loop.h). ADAMANT_LOAD in its environment holds the settings: "rate=300 reads=10".

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/model/model.h"
#include "services/common/service/service.h"
#include "tests/processes/load_loop.h"

namespace adamant::processes {
namespace {

class LoadService final : public service::Service {
 public:
  LoadService(const service::ServiceContext& context, const LoadSettings& settings)
      : context_(context), settings_(settings) {}

  service::Endpoints GetEndpoints() override { return {}; }

  absl::Status Start(const v1::Welcome& welcome) override {
    const v1::JobSpec& spec = welcome.job().spec();
    ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(job::NetOf(welcome.job())));
    const auto buckets =
        static_cast<std::uint32_t>(spec.distribution().parameter_servers().buckets());
    loop_.emplace(LoadIdentity{.job_uid = welcome.job_uid(),
                               .slot = context_.flags.slot,
                               .writers = static_cast<std::uint32_t>(spec.distribution().workers()),
                               .incarnation = welcome.incarnation(),
                               .seed = static_cast<std::uint64_t>(spec.run_policy().seed()),
                               .folder = context_.flags.data_dir},
                  settings_,
                  ShardLayout(std::move(graph.parameters), buckets));
    return absl::OkStatus();
  }

  void OnMessage(const protocol::ControllerMessage& message) override {
    if (const auto* view = std::get_if<protocol::Membership>(&message)) {
      loop_->OnMembership(*view);
    } else if (const auto* pause = std::get_if<protocol::PausePushes>(&message)) {
      Pause(pause->checkpoint);
    } else if (std::holds_alternative<protocol::ResumePushes>(message)) {
      loop_->OnResume();
    }
  }

  protocol::Heartbeat MakeHeartbeat() override { return {.progress = protocol::WorkerProgress{}}; }

  void Stop() override {}

 private:
  void Pause(std::uint64_t checkpoint) {
    loop_->OnPause([this, checkpoint](std::uint64_t begun) {
      context_.controller.Send(protocol::PushesPaused{.checkpoint = checkpoint, .sequence = begun});
    });
  }

  const service::ServiceContext context_;
  const LoadSettings settings_;
  std::optional<LoadLoop> loop_;
};

absl::StatusOr<std::unique_ptr<service::Service>> MakeLoad(const service::ServiceContext& context) {
  const char* text = std::getenv("ADAMANT_LOAD");
  ADAMANT_ASSIGN_OR_RETURN(const LoadSettings settings,
                           ParseLoadSettings(text == nullptr ? "" : text));
  return std::make_unique<LoadService>(context, settings);
}

}  // namespace
}  // namespace adamant::processes

int main(int argc, char** argv) {
  return adamant::service::RunService(
      argc, argv, adamant::v1::WORKER, adamant::processes::MakeLoad);
}
