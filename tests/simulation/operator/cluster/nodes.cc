#include "tests/simulation/operator/cluster/nodes.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/pods/pod_view.h"

namespace adamant::orchestration {

using kube::Json;
using kube::StringAt;

namespace {

constexpr int kKilled = 137;
constexpr int kExitCodes[] = {kKilled, kKilled, 1, 42, 139};

bool IsBeingDeleted(const Json& pod) {
  return !StringAt(pod, {"metadata", "deletionTimestamp"}).empty();
}

// The claim of a parameter server's data; empty: it has none.
std::string ClaimOf(const Json& pod) {
  const Json* volumes = kube::Find(pod, {"spec", "volumes"});
  for (const Json& volume : volumes != nullptr ? *volumes : Json::array()) {
    if (std::string claim = StringAt(volume, {"persistentVolumeClaim", "claimName"});
        !claim.empty()) {
      return claim;
    }
  }
  return "";
}

}  // namespace

Nodes::Nodes(World& world, Network& network, DeathWatch& deaths)
    : world_(world),
      network_(network),
      deaths_(deaths),
      cache_(
          world.admin,
          kube::kPods,
          {},
          [](const Json& object) { return std::make_shared<const Json>(object); },
          world.scheduler,
          world.sleeper) {
  for (int i = 0; i < kNodes; ++i) {
    nodes_.push_back(std::make_shared<Life>(Life{.name = "node-" + std::to_string(i)}));
    world_.admin.Create(kube::kNodes, {{"metadata", {{"name", nodes_.back()->name}}}})
        .IgnoreError();
    TellReady(nodes_.back()->name, true);
  }
  cache_.AddHandler([this](const Cache::Change& change) { OnPod(change); });
}

Nodes::~Nodes() {
  for (const auto& [uid, pod] : pods_) {
    pod->process = nullptr;  // plans that are left may still hold the pod
  }
}

void Nodes::OnApiChanged() {
  std::uint64_t& changed = world_.changed["/api/v1/pods"];
  if (seen_ != changed) {
    seen_ = changed;
    while (cache_.Step() != Clock::Duration{}) {  // the history it wants is gone: it lists again
    }
  }
}

void Nodes::OnPod(const Cache::Change& change) {
  const Json& object = change.after != nullptr ? *change.after : *change.before;
  const std::string uid = kube::UidOf(object);
  PodPtr& pod = pods_[uid];
  if (pod == nullptr) {
    pod = std::make_shared<Pod>();
    const auto delay = world_.scheduler.Random(milliseconds(5), milliseconds(200));
    world_.scheduler.After(delay, nullptr, [this, uid] { Bind(uid); });
  }
  pod->object = object;
  if (change.after == nullptr) {
    pod->gone = true;
    const auto delay = world_.scheduler.Random(milliseconds(0), seconds(2));
    world_.scheduler.After(delay, pod->node, [this, uid] { Forget(uid); });
  } else if (IsBeingDeleted(object) && !pod->ending) {
    pod->ending = true;
    const auto delay = world_.scheduler.Random(milliseconds(0), seconds(2));
    world_.scheduler.After(delay, pod->node, [this, uid] { Terminate(uid); });
  }
}

Nodes::PodPtr Nodes::Find(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found != pods_.end() && !found->second->gone ? found->second : nullptr;
}

void Nodes::Bind(const std::string& uid) {
  const PodPtr pod = Find(uid);
  if (pod == nullptr) {
    return;
  }
  if (world_.scheduler.Now() < crowded_until_ && world_.scheduler.Chance(0.05)) {
    const auto delay = world_.scheduler.Random(seconds(5), seconds(60));
    world_.scheduler.After(delay, nullptr, [this, uid] { Bind(uid); });
    return;
  }
  pod->node = nodes_[world_.scheduler.rng().Below(nodes_.size())];
  Json bound = pod->object;
  bound["spec"]["nodeName"] = pod->node->name;
  bound["metadata"].erase("resourceVersion");
  if (world_.admin.Update(kube::kPods, std::move(bound)).ok()) {
    const auto delay = world_.scheduler.Random(milliseconds(20), milliseconds(500));
    world_.scheduler.After(delay, pod->node, [this, uid] { Run(uid); });
  }
}

void Nodes::Run(const std::string& uid) {
  const PodPtr pod = Find(uid);
  const auto view = pod != nullptr ? kube::ParsePod(pod->object) : nullptr;
  const bool is_export = view != nullptr && !view->IsProcess();
  if (pod != nullptr && !pod->ending && !(is_export && exports_ == Exports::kNeverStart)) {
    StartProcess(uid, *pod);
    WriteStatus(*pod);
  }
}

void Nodes::StartProcess(const std::string& uid, Pod& pod) {
  const auto view = kube::ParsePod(pod.object);
  if (view == nullptr) {
    return;  // somebody else's pod: it runs
  }
  if (!view->IsProcess()) {
    return RunExport(uid, pod);
  }
  Process::Settings settings{.job = view->job_uid,
                             .id = view->pod.process.id,
                             .generation = view->pod.process.generation,
                             .uid = uid,
                             .volume = nullptr,
                             .servers = nullptr};
  std::shared_ptr<Servers>& servers = servers_[view->job_uid];
  if (servers == nullptr) {
    servers = std::make_shared<Servers>();
  }
  settings.servers = servers;
  if (const std::string claim = ClaimOf(pod.object); !claim.empty()) {
    const auto object = world_.admin.Get(kube::kPersistentVolumeClaims, {kNamespace, claim});
    std::shared_ptr<Volume>& volume = volumes_[object.ok() ? kube::UidOf(*object) : claim];
    if (volume == nullptr) {
      volume = std::make_shared<Volume>();
      // In place of one that was left, whose snapshots are asked for in vain.
      volume->disk.lost_snapshots = settings.id.role == controller::Role::kParameterServer &&
                                    view->pod.process.generation > 1;
    }
    settings.volume = volume;
  }
  world_.scheduler.Record(pod.node->name, "starts " + view->pod.name);
  pod.process = std::make_unique<Process>(
      world_, network_, std::move(settings), [this, uid](int code) { OnExit(uid, code); });
}

void Nodes::RunExport(const std::string& uid, Pod& pod) {
  bool fails = world_.scheduler.Chance(0.1);
  if (exports_ != Exports::kMostlyWork) {
    fails = exports_ == Exports::kFail;
    pod.last_words = fails ? kWhyExportsFail : "";
  }
  world_.scheduler.After(
      milliseconds(300), pod.node, [this, uid, fails] { OnExit(uid, fails ? 1 : 0); });
}

void Nodes::OnExit(const std::string& uid, int code) {
  const PodPtr pod = Find(uid);
  if (pod == nullptr) {
    return;
  }
  pod->exit_code = code;
  if (pod->process != nullptr && pod->process->dismissed()) {
    deaths_.OnDismissed(pod->object);
  }
  const auto delay = world_.scheduler.Random(milliseconds(1), milliseconds(300));
  world_.scheduler.After(delay, pod->node, [this, pod] {
    if (!pod->gone) {
      const bool crashed = !pod->cut && !pod->evicted && !IsBeingDeleted(pod->object);
      WriteStatus(*pod);
      if (crashed) {
        deaths_.OnCrash(pod->object);
      }
    }
  });
}

// The kubelet's part of a deletion.
void Nodes::Terminate(const std::string& uid) {
  const PodPtr pod = Find(uid);
  if (pod == nullptr) {
    return;
  }
  if (pod->process != nullptr && !pod->process->ended()) {
    pod->process->Kill();
    pod->exit_code = kKilled;
  }
  if (pod->process != nullptr) {
    WriteStatus(*pod);
  }
  world_.scheduler.After(milliseconds(50), pod->node, [this, uid, pod] {
    world_.admin
        .Delete(kube::kPods,
                kube::KeyOf(pod->object),
                {.uid = uid, .grace_period = std::chrono::seconds(0)})
        .IgnoreError();
  });
}

void Nodes::Forget(const std::string& uid) {
  world_.scheduler.Record("nodes", "forget " + uid);
  pods_.erase(uid);
}

void Nodes::WriteStatus(const Pod& pod) {
  Json status = {{"phase", "Running"}};
  Json state = {{"running", Json::object()}};
  if (pod.exit_code >= 0) {
    status["phase"] = pod.exit_code == 0 ? "Succeeded" : "Failed";
    state = {{"terminated", {{"exitCode", pod.exit_code}, {"message", pod.last_words}}}};
  }
  if (pod.evicted) {
    status["conditions"] = Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}});
  }
  status["containerStatuses"] = Json::array({{{"name", "adamant"}, {"state", state}}});
  world_.admin
      .Patch(kube::kPods,
             kube::KeyOf(pod.object),
             kube::PatchType::kMerge,
             {{"metadata", {{"uid", kube::UidOf(pod.object)}}}, {"status", status}},
             "status")
      .IgnoreError();
}

Nodes::PodPtr Nodes::PickRunning() {
  std::vector<PodPtr> running;
  for (const auto& [uid, pod] : pods_) {
    if (!pod->gone && !pod->ending && pod->process != nullptr && !pod->process->ended()) {
      running.push_back(pod);
    }
  }
  return running.empty() ? nullptr : running[world_.scheduler.rng().Below(running.size())];
}

void Nodes::CrashProcess() {
  if (const PodPtr pod = PickRunning()) {
    const int code = kExitCodes[world_.scheduler.rng().Below(std::size(kExitCodes))];
    world_.scheduler.Record(StringAt(pod->object, {"metadata", "name"}), "crashes", code);
    pod->process->Kill();
    OnExit(kube::UidOf(pod->object), code);
  }
}

// As a node does that runs out of memory: the pod stays, and its status says whose doing it was.
void Nodes::EvictPod() {
  if (const PodPtr pod = PickRunning()) {
    world_.scheduler.Record(StringAt(pod->object, {"metadata", "name"}), "is evicted");
    pod->process->Kill();
    pod->evicted = true;
    OnExit(kube::UidOf(pod->object), kKilled);
  }
}

void Nodes::DeletePod(bool at_once) {
  const PodPtr pod = PickRunning();
  if (pod == nullptr) {
    return;
  }
  world_.scheduler.Record(StringAt(pod->object, {"metadata", "name"}), "is deleted", at_once);
  kube::DeleteOptions options{.uid = kube::UidOf(pod->object)};
  if (at_once) {
    options.grace_period = std::chrono::seconds(0);
  }
  world_.admin.Delete(kube::kPods, kube::KeyOf(pod->object), options).IgnoreError();
}

// A node that is silent counts as not ready after a while, as Kubernetes has it.
LifePtr Nodes::Lose(Clock::Duration time) {
  LifePtr node = nodes_[world_.scheduler.rng().Below(nodes_.size())];
  world_.scheduler.Record(node->name, "is lost");
  node->paused_until = std::max(node->paused_until, world_.scheduler.Now() + time);
  const auto noticed = world_.scheduler.Random(seconds(1), seconds(10));
  world_.scheduler.After(noticed, nullptr, [this, node] {
    if (node->paused_until > world_.scheduler.Now()) {
      TellReady(node->name, false);
      world_.scheduler.At(node->paused_until, node, [this, node] { TellReady(node->name, true); });
    }
  });
  return node;
}

void Nodes::TellReady(const std::string& node, bool ready) {
  const Json condition = {{"type", "Ready"}, {"status", ready ? "True" : "Unknown"}};
  world_.admin
      .Patch(kube::kNodes,
             {"", node},
             kube::PatchType::kMerge,
             {{"status", {{"conditions", Json::array({condition})}}}},
             "status")
      .IgnoreError();
}

void Nodes::Pause(Clock::Duration time) {
  const LifePtr node = Lose(time);
  for (const auto& [uid, pod] : pods_) {
    if (pod->node == node && pod->process != nullptr) {
      pod->process->life()->paused_until = node->paused_until;
      deaths_.OnMayBeLost(pod->object);
    }
  }
}

void Nodes::CutPower(Clock::Duration time) {
  const LifePtr node = Lose(time);
  for (const auto& [uid, pod] : std::map(pods_)) {
    if (pod->node == node && pod->process != nullptr && !pod->process->ended()) {
      pod->cut = true;
      pod->process->Kill();
      deaths_.OnMayBeLost(pod->object);
      OnExit(uid, kKilled);
    }
  }
}

bool Nodes::idle() const {
  return std::ranges::none_of(pods_, [](const auto& entry) {
    return entry.second->process != nullptr && !entry.second->process->ended();
  });
}

}  // namespace adamant::orchestration
