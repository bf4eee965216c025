#include "operator/local/state/run_status.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "operator/control/job_settings.h"
#include "operator/control/status_codec.h"
#include "operator/core/job/job_controller.h"
#include "operator/local/history/recorder.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/state/kv_state_store.h"
#include "operator/local/state/resumption.h"
#include "operator/local/state/state_copies.h"
#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/job/job.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status_grpc.h"

namespace adamant::local {
namespace {

constexpr std::chrono::seconds kAnswerTimeout{3};
constexpr std::chrono::seconds kStartTime{2};
constexpr std::chrono::milliseconds kRetryInterval{50};
constexpr std::uint64_t kMaxAnswerBytes = std::uint64_t{4} << 20;
constexpr std::string_view kUnix = "unix:";

absl::StatusOr<RunStatus> AskController(const RunPaths& paths) {
  absl::StatusOr<std::string> endpoint = ReadFile(paths.endpoint(), 256);
  if (!endpoint.ok()) {
    return absl::UnavailableError(
        "the controller of " + paths.root.string() +
        " has not said where it listens: " + std::string(endpoint.status().message()));
  }
  std::string address = *std::move(endpoint);
  while (!address.empty() && address.back() == '\n') {
    address.pop_back();
  }
  if (address.empty()) {
    return absl::UnavailableError(paths.endpoint().string() + " is empty");
  }
  if (address.starts_with(kUnix) && access(address.c_str() + kUnix.size(), W_OK) != 0 &&
      errno == EACCES) {
    return absl::PermissionDeniedError("the processes of " + paths.root.string() +
                                       " are another user's");
  }
  const auto stub = v1::Controller::NewStub(rpc::NewChannel(address, kMaxAnswerBytes));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswerTimeout);
  v1::JobStatus answer;
  const grpc::Status status = stub->GetStatus(&context, {}, &answer);
  if (!status.ok()) {
    return absl::UnavailableError("the controller of " + paths.root.string() + " at " + address +
                                  " does not answer: " + status.error_message());
  }
  return RunStatus{.live = true, .report = control::Decode(answer)};
}

absl::Status NoState(const RunPaths& paths) {
  ADAMANT_RETURN_IF_ERROR(CheckNotBegun(paths));
  return absl::NotFoundError(paths.controller().string() + ": holds no state of a job yet");
}

absl::StatusOr<RunStatus> ReadState(const RunPaths& paths) {
  const RunManifest manifest = ReadRunManifest(paths, job::DataReading::kNone);
  if (manifest.job == nullptr) {
    return absl::InvalidArgumentError(job::Format(manifest.problems.front()));
  }
  if (!HasState(paths)) {
    return NoState(paths);
  }
  ADAMANT_ASSIGN_OR_RETURN(StateCopies::Stored stored,
                           StateCopies::Read({paths.controller(), paths.controller_copy()}));
  ADAMANT_ASSIGN_OR_RETURN(const auto results, StoredResults(stored.snapshot));
  const auto state = stored.snapshot.entries.find(controller::kStateKey);
  if (state == stored.snapshot.entries.end()) {
    return NoState(paths);
  }
  ADAMANT_ASSIGN_OR_RETURN(
      const auto job,
      controller::JobController::Restore(control::SettingsOf(*manifest.job), state->second));
  return RunStatus{.live = false,
                   .report = job->Report(),
                   .damage = std::move(stored.damage),
                   .gone_back = Recorder::CheckRows(paths, results),
                   .not_taken = NotTaken(manifest)};
}

// What is stored may be a step ahead of metrics.csv, or of its copy: that tells nothing.
absl::StatusOr<RunStatus> ReadStateOfAnothers(const RunPaths& paths) {
  ADAMANT_ASSIGN_OR_RETURN(RunStatus status, ReadState(paths));
  status.anothers = true;
  status.damage.clear();
  status.gone_back.clear();
  return status;
}

}  // namespace

absl::StatusOr<RunStatus> ReadRunStatus(const std::filesystem::path& run_folder) {
  const RunPaths paths(run_folder);
  ADAMANT_RETURN_IF_ERROR(CheckHoldsRun(paths));
  const auto until = std::chrono::steady_clock::now() + kStartTime;
  while (true) {
    ADAMANT_ASSIGN_OR_RETURN(const bool controlled, RunLock::IsControlled(paths));
    absl::StatusOr<RunStatus> status = controlled ? AskController(paths) : ReadState(paths);
    if (absl::IsPermissionDenied(status.status())) {
      status = ReadStateOfAnothers(paths);
    }
    if (status.ok() || std::chrono::steady_clock::now() >= until) {
      return status;
    }
    std::this_thread::sleep_for(kRetryInterval);  // a controller has just begun, or ended
  }
}

}  // namespace adamant::local
