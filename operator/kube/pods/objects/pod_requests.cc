#include "operator/kube/pods/objects/pod_requests.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "operator/control/server_memory.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/worker/rpc/job/worker_memory.h"

namespace adamant::kube {
namespace {

using controller::Role;

// Thousandths of a core. A worker's thread uses a whole one where there is one; but a job that got
// by with less on a small cluster is to find its place there. Between pods of a busy node they are
// the weights by which its time is shared.
constexpr int kOfAThread = 250;
constexpr int kOfOthers = 50;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kOutputBytes = 64 * kMiB;  // models come on top; it is soon over

// Of what only the data servers will know, as the examples in files, nothing is counted.
control::ExampleCounts ExamplesOf(const v1::Data& data) {
  return {.train = static_cast<std::uint64_t>(data.train().digits().examples()),
          .validation = static_cast<std::uint64_t>(data.validation().digits().examples())};
}

absl::StatusOr<std::uint64_t> MemoryOf(const v1::TrainingJob& job, Role role) {
  if (role == Role::kWorker) {
    return worker::WorkerMemory(job);
  }
  ADAMANT_ASSIGN_OR_RETURN(const control::ServerMemory servers,
                           control::ServerMemoryOf(job, ExamplesOf(job.spec().data())));
  return role == Role::kParameterServer ? servers.parameter_server : servers.data_server;
}

// Null where a template has taken it away.
Json* OurContainer(Json& pod) {
  const Json* containers = Find(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) {
    return nullptr;
  }
  for (Json& container : pod["spec"]["containers"]) {
    if (StringAt(container, {"name"}) == kContainer) {
      return &container;
    }
  }
  return nullptr;
}

// Whether these "resources" have a request or a limit of that name.
bool Says(const Json& owner, const char* resource) {
  return Find(owner, {"resources", "requests", resource}) != nullptr ||
         Find(owner, {"resources", "limits", resource}) != nullptr;
}

void AddRequest(const char* resource, const std::string& quantity, Json& pod) {
  Json* const container = OurContainer(pod);
  if (container == nullptr || Says(*container, resource) || Says(pod["spec"], resource)) {
    return;
  }
  Json& resources = (*container)["resources"];
  const bool takes = resources.is_null() || resources.is_object();
  if (takes && (!resources.contains("requests") || resources["requests"].is_object())) {
    resources["requests"][resource] = quantity;
  }
}

void AddCpu(std::int64_t thousandths, Json& pod) {
  AddRequest("cpu", std::to_string(thousandths) + "m", pod);
}

void AddMemory(std::uint64_t bytes, Json& pod) {
  AddRequest("memory", std::to_string((bytes + kMiB - 1) / kMiB) + "Mi", pod);
}

}  // namespace

void AddRequests(const v1::TrainingJob& job, Role role, Json& pod) {
  AddCpu(role == Role::kWorker ? kOfAThread * job.spec().distribution().threads_per_worker()
                               : kOfOthers,
         pod);
  // A job that no worker could run says so itself.
  if (const absl::StatusOr<std::uint64_t> bytes = MemoryOf(job, role); bytes.ok()) {
    AddMemory(*bytes, pod);
  }
}

void AddOutputRequests(Json& pod) {
  AddCpu(kOfOthers, pod);
  AddMemory(kOutputBytes, pod);
}

}  // namespace adamant::kube
