#include "tests/simulation/operator/user.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube/pods/pod_view.h"

namespace adamant::orchestration {

using kube::Json;
using kube::StringAt;

User::User(World& world, Checker& checker) : world_(world), checker_(checker) {
  simulation::Scheduler& chance = world_.scheduler;
  const auto workers = chance.Between(1, 2);
  const auto data_servers = chance.Between(1, 2);
  const auto servers = chance.Between(1, 3);
  const auto copies = chance.Chance(0.5) ? 1 : std::min<std::uint64_t>(2, servers);
  const auto buckets = chance.Chance(0.05) ? 66 : servers + chance.rng().Below(4);
  checker_.SetServers(static_cast<std::uint32_t>(data_servers),
                      static_cast<std::uint32_t>(servers));
  copies_ = static_cast<std::uint32_t>(copies);
  restart_limit_ = chance.Chance(0.2) ? 1 : 1000;
  spec_ = {{"model", {{"reference", "adam-mnist"}}},
           {"data",
            {{"train", {{"digits", {{"seed", 1}, {"examples", 1000}}}}},
             {"validation", {{"digits", {{"seed", 2}, {"examples", 100}}}}}}},
           {"distribution",
            {{"workers", workers},
             {"dataServers", data_servers},
             {"parameterServers", {{"count", servers}, {"copies", copies}, {"buckets", buckets}}}}},
           {"runPolicy",
            {{"epochs", chance.Between(1, 3)},
             {"failureRules", SomeRules()},
             {"restartBudget", {{"limit", restart_limit_}, {"backoff", "0.2s"}}}}}};
}

Json User::SomeRules() {
  simulation::Scheduler& chance = world_.scheduler;
  constexpr const char* kRoles[] = {"Worker", "DataServer", "ParameterServer"};
  Json rules = Json::array();
  for (std::uint64_t i = chance.rng().Below(4); i > 0; --i) {
    Json rule = {{"action",
                  chance.Chance(0.1)   ? "FailJob"
                  : chance.Chance(0.5) ? "Ignore"
                                       : "RestartPod"}};
    const std::uint64_t cause = chance.rng().Below(4);
    rule["cause"] = cause == 0 ? "Disruption" : cause == 1 ? "NodeLost" : "Exit";
    if (rule["cause"] == "Exit" && chance.Chance(0.7)) {
      rule["exitCodes"] = chance.Chance(0.5) ? Json::array({137}) : Json::array({1, 42});
    }
    if (chance.Chance(0.5)) {
      rule["roles"] = Json::array({kRoles[chance.rng().Below(3)]});
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

void User::WantForever() {
  forever_ = true;
  spec_["runPolicy"]["epochs"] = 100'000;
}

void User::WantStartWithin(seconds time) {
  spec_["runPolicy"]["startDeadline"] = std::to_string(time.count()) + "s";
}

void User::Apply(const Json& changes) {
  Json object = {{"metadata", {{"name", kJobName}, {"namespace", kNamespace}}}, {"spec", spec_}};
  object["spec"].merge_patch(changes);
  const auto created = world_.admin.Create(kube::kTrainingJobs, object);
  uid_ = created.ok() ? kube::UidOf(*created) : "";
  world_.scheduler.Record("user", "applies");
}

void User::Delete() {
  world_.scheduler.Record("user", "deletes");
  world_.admin.Delete(kube::kTrainingJobs, kJobKey).IgnoreError();
  uid_.clear();
  for (const auto delay : {seconds(1), seconds(4), seconds(15), seconds(40)}) {
    world_.scheduler.After(delay, nullptr, [this] { world_.api.CollectGarbage(); });
  }
}

void User::SetSuspended(bool suspended) {
  world_.scheduler.Record("user", "suspends", suspended);
  world_.admin
      .Patch(kube::kTrainingJobs,
             kJobKey,
             kube::PatchType::kMerge,
             {{"spec", {{"runPolicy", {{"suspend", suspended}}}}}})
      .IgnoreError();
}

void User::SuspendFor(Clock::Duration time) {
  Suspend();
  world_.scheduler.After(time, nullptr, [this] { Resume(); });
}

void User::Resume() { SetSuspended(false); }

void User::Recreate() {
  if (recreated_ < 2 && world_.scheduler.Chance(0.5)) {
    ++recreated_;
    Delete();
    Apply();
  }
}

void User::Scale() {
  const std::uint64_t workers = world_.scheduler.Between(1, 4);
  world_.scheduler.Record("user", "scales", workers);
  world_.admin
      .Patch(kube::kTrainingJobs,
             kJobKey,
             kube::PatchType::kMerge,
             {{"spec", {{"distribution", {{"workers", workers}}}}}})
      .IgnoreError();
}

// Of the pods that have not ended and are not being deleted.
std::multiset<std::int64_t> User::WorkerSlots() const {
  std::multiset<std::int64_t> slots;
  const auto pods = world_.admin.List(kube::kPods, {.ns = kNamespace});
  for (const Json& object : pods.value_or(std::vector<Json>())) {
    const auto view = kube::ParsePod(object);
    if (view != nullptr && view->job_uid == uid_ && view->IsProcess() &&
        view->pod.process.id.role == controller::Role::kWorker && !view->pod.deleting &&
        view->pod.state != kube::ObservedPod::State::kEnded) {
      slots.insert(view->pod.process.id.slot);
    }
  }
  return slots;
}

std::multiset<std::int64_t> User::WantedSlots() const {
  std::multiset<std::int64_t> slots;
  const std::int64_t workers = kube::IntAt(Get(), {"spec", "distribution", "workers"});
  for (std::int64_t slot = 0; slot < workers; ++slot) {
    slots.insert(slot);
  }
  return slots;
}

bool User::HasItsWorkers() const { return WorkerSlots() == WantedSlots(); }

bool User::HasSurplusWorkers() const {
  return !std::ranges::includes(WantedSlots(), WorkerSlots());
}

void User::OccupyNames(Clock::Duration time) {
  const auto role = static_cast<controller::Role>(world_.scheduler.Between(1, 3));
  const controller::StartProcess next{.id = {role, 0},
                                      .generation = world_.scheduler.Between(1, 4)};
  const Json pod = {
      {"metadata", {{"name", kube::PodName(kJobName, next)}, {"namespace", kNamespace}}},
      {"spec", {{"containers", Json::array({{{"name", "adamant"}}})}}}};
  const auto created = world_.admin.Create(kube::kPods, pod);
  if (!created.ok()) {
    return;
  }
  const std::string uid = kube::UidOf(*created);
  checker_.AddStranger(uid);
  world_.scheduler.After(time, nullptr, [this, uid, key = kube::KeyOf(pod)] {
    checker_.RemoveStranger(uid);
    world_.admin.Delete(kube::kPods, key, {.uid = uid}).IgnoreError();
  });
}

Json User::Get() const { return world_.admin.Get(kube::kTrainingJobs, kJobKey).value_or(Json()); }

std::string User::PhaseNow() const { return StringAt(Get(), {"status", "phase"}); }

bool User::HasEnded() const { return !StringAt(Get(), {"status", "completionTime"}).empty(); }

std::vector<std::string> User::Belongings() const {
  std::vector<std::string> found;
  for (const kube::Resource& resource : {kube::kPods,
                                         kube::kPersistentVolumeClaims,
                                         kube::kConfigMaps,
                                         kube::kShardMaps,
                                         kube::kPodDisruptionBudgets}) {
    const auto objects = world_.admin.List(
        resource, {.ns = kNamespace, .label_selector = std::string(kube::kJobLabel) + "=mnist"});
    for (const Json& object : objects.value_or(std::vector<Json>())) {
      found.push_back(std::string(resource.plural) + "/" + kube::KeyOf(object).name);
    }
  }
  return found;
}

}  // namespace adamant::orchestration
