#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/cli/kubectl/explain/explain.h"
#include "operator/cli/kubectl/output/fetch_output.h"
#include "operator/cli/kubectl/output/output_pod.h"
#include "operator/kube/pods/objects/pod_image.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::kubectl {
namespace {

using kube::StringAt;

constexpr std::chrono::milliseconds kInterval{300};
constexpr std::uint64_t kMegabyte = 1'000'000;

constexpr char kExamples[] = R"(Examples:
  kubectl adamant export mnist                     model, metrics and plot into the folder mnist/
  kubectl adamant export mnist --format onnx --out models

A pod for the time of this command reads the job's output volume; what arrives is
compared with checksums. It needs the right to create pods and to reach them through
the API server (pods/proxy), as the role edit has.)";

std::string RandomHex(int words) {
  std::random_device device;
  std::string text;
  for (int i = 0; i < words; ++i) {
    text += cli::Text("%08x", device());
  }
  return text;
}

std::vector<std::string> WantedFiles(const std::string& format) {
  const local::RunPaths paths("");
  std::vector<std::string> names = {paths.metrics().string(), paths.curve().string()};
  if (format != "onnx") {
    names.push_back(paths.safetensors().string());
  }
  if (format != "safetensors") {
    names.push_back(paths.onnx().string());
  }
  return names;
}

absl::Status CheckHasOutput(const Json& job) {
  const std::string phase = PhaseOf(job);
  const std::string name = kube::KeyOf(job).name;
  if (phase == "Succeeded") {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      name + " is " + (phase.empty() ? "not begun" : phase) +
      ": a job writes its model when it succeeds; `kubectl adamant " +
      (phase == "Failed" ? "explain " + name + "` says why it has not"
                         : "status --watch " + name + "` waits for that"));
}

// The operator has noted the image beside what its pod wrote the model from.
absl::StatusOr<kube::PodImage> ImageOf(const Session& session, const Json& job) {
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<Json> maps,
                           ReadOwned(session, job, kube::kConfigMaps));
  for (const Json& map : maps) {
    if (kube::PodImage image = kube::ImageIn(map); !image.name.empty()) {
      return image;
    }
  }
  return absl::FailedPreconditionError(
      "the operator has not noted which image it ran; name one of this version with --image");
}

// A pod that exists as long as this does.
class TemporaryPod {
 public:
  TemporaryPod(const Session& session, kube::ObjectKey key)
      : client_(session.client.With(kube::Cancellation())), key_(std::move(key)) {}
  ~TemporaryPod() {
    const absl::Status status =
        client_.Delete(kube::kPods, key_, {.grace_period = std::chrono::seconds(0)});
    if (!status.ok() && !absl::IsNotFound(status)) {
      std::fprintf(stderr,
                   "adamant: the pod %s stays behind: %s\n",
                   ToString(key_).c_str(),
                   std::string(status.message()).c_str());
    }
  }
  TemporaryPod(const TemporaryPod&) = delete;
  TemporaryPod& operator=(const TemporaryPod&) = delete;

 private:
  const kube::Client client_;  // also after the user has stopped the rest
  const kube::ObjectKey key_;
};

// What keeps the pod from running, in one line.
std::string WhyNot(const Session& session, const Json& job, const Json& pod) {
  Observed observed;
  observed.job = job;
  observed.now = session.clock.WallNow();
  if (auto events = session.client.List(kube::kEvents, {.ns = session.ns}); events.ok()) {
    observed.events = *std::move(events);
  }
  std::vector<std::string> advice;
  const std::optional<Cause> cause = DiagnosePod(pod, observed, advice);
  std::string text = cause ? cause->text : StateOf(pod);
  for (const Cause& deeper : cause ? cause->because : std::vector<Cause>()) {
    text += ": " + deeper.text;
  }
  return text + (advice.empty() ? "" : "; " + advice.front());
}

absl::StatusOr<std::vector<OutputFile>> AwaitIndex(const Session& session,
                                                   const Json& job,
                                                   const kube::ObjectKey& key,
                                                   const std::string& path,
                                                   std::chrono::seconds timeout) {
  const auto deadline = session.clock.Now() + timeout;
  while (true) {
    ADAMANT_ASSIGN_OR_RETURN(const Json pod, session.client.Get(kube::kPods, key));
    absl::Status status = absl::UnavailableError("it is " + StateOf(pod));
    if (StateOf(pod) == "Running") {
      auto index = FetchIndex(session, path);
      if (index.ok() || absl::IsPermissionDenied(index.status())) {
        return index;
      }
      status = index.status();
    }
    if (HasFailed(pod) || session.clock.Now() > deadline) {
      return absl::AbortedError("the pod that reads the output volume " +
                                (StateOf(pod) == "Running"
                                     ? "cannot be reached: " + std::string(status.message())
                                     : WhyNot(session, job, pod)));
    }
    if (!session.sleeper.Sleep(kInterval, session.cancellation)) {
      return absl::CancelledError("stopped");
    }
  }
}

absl::Status CheckRoom(const std::vector<OutputFile>& files, const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  for (const OutputFile& file : files) {
    bytes += file.size;  // of few files, each far smaller than 2^64
  }
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (!error && space.available < bytes) {
    return absl::ResourceExhaustedError(
        folder.string() + " has room for " + std::to_string(space.available / kMegabyte) +
        " MB, and the output is of " + std::to_string(bytes / kMegabyte + 1) + " MB");
  }
  return absl::OkStatus();
}

// A bar for people who watch; nothing elsewhere.
void ShowProgress(const OutputFile& file, std::uint64_t bytes) {
  if (isatty(STDERR_FILENO) != 0) {
    const auto percent = file.size == 0 ? 100 : 100 * bytes / file.size;
    const std::string bar(static_cast<std::size_t>(percent / 5), '#');
    std::fprintf(stderr,
                 "\r%s",
                 cli::Text("%-24s [%-20s] %3d%% of %.1f MB%s",
                           file.name.c_str(),
                           bar.c_str(),
                           static_cast<int>(percent),
                           static_cast<double>(file.size) / static_cast<double>(kMegabyte),
                           bytes == file.size ? "\n" : "")
                     .c_str());
  }
}

absl::Status FetchAll(const Session& session,
                      const std::string& path,
                      const std::vector<OutputFile>& files,
                      const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return SystemError(error.value(), "cannot create", folder);
  }
  ADAMANT_RETURN_IF_ERROR(CheckRoom(files, folder));
  for (const OutputFile& file : files) {
    ADAMANT_RETURN_IF_ERROR(FetchFile(
        session, path, file, folder, [&file](std::uint64_t bytes) { ShowProgress(file, bytes); }));
    session.print((folder / file.name).string() + "\n");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> ExportOutput(Session& session, const ExportFlags& flags) {
  ADAMANT_ASSIGN_OR_RETURN(const Json job, ReadJob(session, flags.target.job));
  ADAMANT_RETURN_IF_ERROR(CheckHasOutput(job));
  OutputPod pod{.name = flags.target.job + "-fetch-" + RandomHex(1),
                .image = {.name = flags.image},
                .key = RandomHex(4),
                .files = WantedFiles(flags.format)};
  if (pod.image.name.empty()) {
    ADAMANT_ASSIGN_OR_RETURN(pod.image, ImageOf(session, job));
  }
  const kube::ObjectKey key{session.ns, pod.name};
  const TemporaryPod temporary(session, key);
  ADAMANT_RETURN_IF_ERROR(session.client.Create(kube::kPods, OutputPodObject(job, pod)).status());
  const std::string path = OutputPath(key, pod.key);
  ADAMANT_ASSIGN_OR_RETURN(
      const std::vector<OutputFile> files,
      AwaitIndex(session, job, key, path, std::chrono::seconds(flags.timeout_seconds)));
  if (files.empty()) {
    return absl::NotFoundError("the output volume, claim " +
                               StringAt(job, {"status", "outputClaim"}) +
                               ", holds none of the job's files; has somebody removed them?");
  }
  ADAMANT_RETURN_IF_ERROR(
      FetchAll(session, path, files, flags.out.empty() ? flags.target.job : flags.out));
  return cli::kOk;
}

void AddExport(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("export", "Bring a job's model, metrics and plot to this machine");
  const auto flags = std::make_shared<ExportFlags>();
  AddTarget(command, flags->target);
  cli::AddChoice<std::string>(command,
                              "--format",
                              flags->format,
                              {{"safetensors", "safetensors"}, {"onnx", "onnx"}},
                              "Only the model, in this format");
  command.add_option("--out", flags->out, "Folder for the files [named as the job]")
      ->check(cli::Path());
  command.add_option("--image", flags->image, "Image of the pod [that of the job's pods]");
  command.add_option("--timeout", flags->timeout_seconds, "Seconds for the pod to start [120]")
      ->check(CLI::PositiveNumber.description(""));
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(flags->target,
                             [&flags](Session& session) { return ExportOutput(session, *flags); });
  });
}

}  // namespace adamant::kubectl
