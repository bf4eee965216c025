#include "operator/local/run_processes.h"

#include <utility>
#include <vector>

#include "operator/control/job_settings.h"
#include "operator/local/run_folder/lost_links.h"
#include "operator/local/run_preparation.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::local {

RunProcesses::RunProcesses(const v1::TrainingJob& job,
                           RunPaths paths,
                           std::filesystem::path programs,
                           Launcher* launcher)
    : job_(job),
      paths_(std::move(paths)),
      programs_(std::move(programs)),
      launcher_(launcher != nullptr ? *launcher : children_) {}

absl::Status RunProcesses::Start(const controller::StartProcess& start,
                                 const Way& way,
                                 const std::function<void(std::string)>& tell) {
  const std::string name = controller::ToString(start.id);
  const std::filesystem::path data = paths_.data() / name;
  if (start.id.role == controller::Role::kParameterServer) {
    ADAMANT_RETURN_IF_ERROR(
        CheckLinks(paths_, start.id.slot, FoldersOf(control::SettingsOf(job_))));
  }
  if (std::string strange = SetStrangerAside(data); !strange.empty()) {
    tell(std::move(strange));
  }
  std::vector<std::string> arguments = {ProgramOf(start.id.role, programs_).string(),
                                        "--controller",
                                        way.controller,
                                        "--slot",
                                        std::to_string(start.id.slot),
                                        "--generation",
                                        std::to_string(start.generation),
                                        "--data-dir",
                                        data.string()};
  if (way.sockets != nullptr) {
    way.sockets->AddFlags(start.id, start.generation, arguments);
  }
  return launcher_.Start({.id = start.id,
                          .generation = start.generation,
                          .arguments = std::move(arguments),
                          .log = paths_.logs() / (name + ".log")});
}

}  // namespace adamant::local
