#include "tests/simulation/operator/world/sabotage.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/core/state/state.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/base64.h"

namespace adamant::orchestration {

using kube::HttpRequest;
using kube::HttpResponse;
using kube::Json;

namespace {

bool IsOf(const HttpRequest& request, std::string_view resource) {
  return request.target.find(resource) != std::string::npos;
}

}  // namespace

absl::StatusOr<HttpResponse> Sabotage::Send(const HttpRequest& request,
                                            const kube::Cancellation& cancellation) {
  HttpRequest changed = request;
  ChangeWrite(changed);
  if (world_.mutation == Mutation::kForgetsStatus && IsOf(request, "/status")) {
    return HttpResponse{.status = 200, .headers = {}, .body = request.body};
  }
  const bool creates_pod = request.method == "POST" && IsOf(request, "/pods");
  if (world_.mutation == Mutation::kTrustsLostAnswers && creates_pod &&
      world_.scheduler.Chance(0.2)) {
    Json object = Json::parse(request.body);
    object["metadata"]["uid"] = "never-made";
    return HttpResponse{.status = 201, .headers = {}, .body = object.dump()};
  }
  auto response = world_.api.Send(changed, cancellation);
  if (response.ok() && response->status == 200 && request.method == "GET") {
    Json object = Json::parse(response->body);
    ChangeAnswer(request, object);
    response->body = object.dump();
  }
  return response;
}

bool Sabotage::Hides(std::string_view line) const {
  return world_.mutation == Mutation::kMissesDeletions &&
         line.find("\"type\":\"DELETED\"") != std::string_view::npos &&
         line.find("\"containerStatuses\"") != std::string_view::npos;
}

std::string Sabotage::Changed(std::string_view line) {
  Json event = Json::parse(line);
  if (event.contains("object")) {
    ChangeObject(event["object"]);
  }
  return event.dump();
}

void Sabotage::ChangeWrite(HttpRequest& request) {
  if (request.body.empty() || (request.method != "POST" && request.method != "PUT")) {
    return;
  }
  Json object = Json::parse(request.body);
  if (world_.mutation == Mutation::kIgnoresVersions) {
    object["metadata"].erase("resourceVersion");
  } else if (world_.mutation == Mutation::kNoOwners) {
    object["metadata"].erase("ownerReferences");
  } else if (world_.mutation == Mutation::kRandomNames && IsOf(request, "/pods")) {
    object["metadata"]["name"] =
        kube::KeyOf(object).name + "-" + std::to_string(world_.scheduler.rng().Below(1000));
  }
  request.body = object.dump();
}

void Sabotage::ChangeAnswer(const HttpRequest& request, Json& object) {
  if (object.contains("items")) {
    for (Json& item : object["items"]) {
      ChangeObject(item);
    }
  } else {
    ChangeObject(object);
  }
  if (world_.mutation == Mutation::kTakesStrangers && object.contains("metadata")) {
    object["metadata"]["labels"][kube::kJobUidLabel] = UidOfJob();
  }
  if (IsOf(request, "/configmaps/" + (kJobName + std::string("-state")))) {
    ChangeState(object);
  }
}

// A job or a pod.
void Sabotage::ChangeObject(Json& object) {
  if (Json* spec = object.contains("spec") ? &object["spec"] : nullptr;
      spec != nullptr && spec->contains("distribution")) {
    Json& workers = (*spec)["distribution"]["workers"];
    const Json first = first_workers_.emplace(kube::UidOf(object), workers).first->second;
    if (world_.mutation == Mutation::kIgnoresScale) {
      workers = first;
    } else if (world_.mutation == Mutation::kIgnoresRules) {
      (*spec)["runPolicy"].erase("failureRules");
    }
  }
  Json* status = object.contains("status") ? &object["status"] : nullptr;
  if (status == nullptr || !status->contains("containerStatuses")) {
    return;
  }
  if (world_.mutation == Mutation::kConfusesExits) {
    Json& state = (*status)["containerStatuses"][0]["state"];
    if (state.contains("terminated")) {
      state["terminated"]["exitCode"] = 1;
    }
  } else if (world_.mutation == Mutation::kOverlooksEvictions) {
    status->erase("conditions");
  }
}

void Sabotage::ChangeState(Json& object) {
  if (world_.mutation == Mutation::kReadsOldState) {
    if (old_state_.is_null() || world_.scheduler.Chance(0.2)) {
      old_state_ = object["binaryData"];
    }
    object["binaryData"] = old_state_;
    return;
  }
  Json& stored = object["binaryData"]["state"];
  const auto bytes = kube::DecodeBase64(stored.get<std::string>());
  auto state = controller::DecodeState(bytes.value_or(""));
  if (!state.ok()) {
    return;
  }
  if (world_.mutation == Mutation::kForgetsRestarts) {
    state->restarts = 0;
  } else if (world_.mutation == Mutation::kJudgesTwice) {
    for (controller::SlotRecord& slot : state->slots) {
      slot.concluded = 0;
    }
  }
  stored = kube::EncodeBase64(controller::Encode(*state));
}

std::string Sabotage::UidOfJob() const {
  const auto job = world_.admin.Get(kube::kTrainingJobs, {kNamespace, kJobName});
  return job.ok() ? kube::UidOf(*job) : "";
}

}  // namespace adamant::orchestration
