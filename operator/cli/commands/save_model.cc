// What the pod runs that writes a finished job's model to the output volume.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/commands/commands.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/core/state/state.h"
#include "operator/kube/schema/job_object.h"
#include "operator/kube/storage/epoch_files.h"
#include "operator/kube_client/base/json.h"
#include "operator/local/history/recorder.h"
#include "operator/local/model/export_model.h"
#include "operator/local/run_folder/run_paths.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/counted.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/job/job.h"
#include "services/common/rpc/tls/member_security.h"
#include "services/common/rpc/tls/tls13.h"
#include "services/common/security/peer_identity.h"
#include "services/common/service/flags.h"
#include "services/common/service/identity_client.h"

namespace adamant::cli {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxInputBytes = std::uint64_t{4} << 20;

struct SaveModelFlags {
  bool check = false;
  std::string inputs;
  std::string out;
  service::TlsFlags tls;
};

// Null where the servers have no TLS.
std::unique_ptr<service::IdentityClient> MakeIdentityClient(const service::TlsFlags& flags,
                                                            std::uint64_t snapshot) {
  if (flags.certificates.empty()) {
    return nullptr;
  }
  rpc::RequireTls13();
  return std::make_unique<service::IdentityClient>(
      service::IdentityClient::Options{.flags = flags,
                                       .identity = {.trust_domain = flags.trust_domain,
                                                    .name_space = flags.name_space,
                                                    .role = security::Role::kExporter,
                                                    .job_uid = "",
                                                    .generation = snapshot}});
}

absl::StatusOr<Json> ReadInput(const SaveModelFlags& flags, const std::string& name) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(std::filesystem::path(flags.inputs) / name, kMaxInputBytes));
  return kube::ParseJson(text);
}

// Epochs up to the last of which no attempt has left a result.
std::uint64_t CountMissing(const std::vector<controller::EpochResult>& results,
                           std::uint64_t epochs) {
  std::set<std::uint64_t> there;
  for (const controller::EpochResult& result : results) {
    if (result.epoch <= epochs) {
      there.insert(result.epoch);
    }
  }
  return epochs - there.size();
}

// Whether a model could be written: by a file that goes again.
absl::Status CheckOut(const std::string& out) {
  ADAMANT_RETURN_IF_ERROR(MakeFolder(out));
  const std::filesystem::path file = std::filesystem::path(out) / ".adamant-check";
  ADAMANT_RETURN_IF_ERROR(WriteFileAtomically(file, "A model can be written here.\n"));
  std::error_code error;
  std::filesystem::remove(file, error);
  return error ? SystemError(error.value(), "cannot remove", file) : absl::OkStatus();
}

absl::Status SaveModel(const SaveModelFlags& flags) {
  ADAMANT_ASSIGN_OR_RETURN(const Json object, ReadInput(flags, "job.json"));
  ADAMANT_ASSIGN_OR_RETURN(const Json from, ReadInput(flags, "source.json"));
  const job::ParseResult parsed = kube::ReadJob(object);
  if (parsed.job == nullptr) {
    return absl::InvalidArgumentError(job::Format(parsed.problems.front()));
  }
  kube::EpochFiles files = kube::ReadEpochFiles(flags.inputs);
  for (const std::string& problem : files.problems) {  // the model is worth more than a row
    PrintError(problem);
  }
  std::vector<controller::EpochResult>& results = files.results;
  const std::uint64_t epochs = results.empty() ? DataEpoch(0) : results.back().epoch;
  if (const std::uint64_t missing = CountMissing(results, epochs); missing > 0) {
    PrintError("there are no results of " + std::to_string(missing) + " of " +
               Counted(epochs, "epoch"));
  }
  ADAMANT_RETURN_IF_ERROR(MakeFolder(flags.out));
  const std::string name = parsed.job->metadata().name();
  const exports::Metadata metadata = {{"job", name},
                                      {"epoch", std::to_string(epochs)},
                                      {"top1", std::to_string(from.at("accuracy").get<double>())}};
  local::ModelSource source{.job_uid = from.at("jobUid"),
                            .snapshot = from.at("snapshot"),
                            .servers = from.at("servers").get<std::vector<std::string>>(),
                            .holders = from.at("primaries").get<std::vector<std::uint32_t>>()};
  const auto identity = MakeIdentityClient(flags.tls, source.snapshot);
  if (identity != nullptr) {
    // One that is refused later cannot open streams to servers, which says so.
    ADAMANT_RETURN_IF_ERROR(identity->Start([](const absl::Status& /*reason*/) {}));
    source.security = rpc::MemberSecurity(identity->store());
  }
  const local::RunPaths paths(flags.out);
  ADAMANT_RETURN_IF_ERROR(local::ExportModel(*parsed.job, source, metadata, paths));
  ADAMANT_ASSIGN_OR_RETURN(local::Recorder recorder,
                           local::Recorder::Open(paths, name, std::move(results)));
  return recorder.Finish();
}

}  // namespace

void AddSaveModel(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("save-model", "Write a job's model from its servers to a folder");
  command.group("");  // for the operator's pods, not for people
  const auto flags = std::make_shared<SaveModelFlags>();
  CLI::Option* const inputs =
      command.add_option("--inputs",
                         flags->inputs,
                         "Folder of job.json, source.json, and a file of each epoch's result");
  command.add_flag("--check", flags->check, "Only see whether it could be written")
      ->excludes(inputs);
  command.add_option("--out", flags->out, "Folder to write to")->required();
  service::AddTlsOptions(command, flags->tls);
  command.callback([flags, &exit_code] {
    const absl::Status status = flags->check ? CheckOut(flags->out) : SaveModel(*flags);
    if (!status.ok()) {
      PrintError(std::string(status.message()));
    }
    exit_code = status.ok() ? kOk : kJobFailed;
  });
}

}  // namespace adamant::cli
