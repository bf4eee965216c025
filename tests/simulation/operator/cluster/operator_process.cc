#include "tests/simulation/operator/cluster/operator_process.h"

#include <algorithm>
#include <utility>

#include "operator/kube/api/custom_resources.h"

namespace adamant::orchestration {

using JobCache = kube::Informer<kube::JobView>;
using PodCache = kube::Informer<kube::PodView>;

namespace {

constexpr char kByJob[] = "job";
constexpr milliseconds kFirstRetry{10};
constexpr seconds kLongestRetry{5};

}  // namespace

struct OperatorProcess::ProcessState {
  using NodeCache = kube::Informer<kube::NodeView>;
  using BudgetCache = kube::Informer<kube::BudgetView>;

  ProcessState(World& world, const kube::Client& client)
      : jobs(client, kube::kTrainingJobs, {}, kube::ParseJobObject, world.scheduler, world.sleeper),
        pods(client,
             kube::kPods,
             {.selection = {.label_selector = "app.kubernetes.io/managed-by=adamant-operator"}},
             kube::ParsePod,
             world.scheduler,
             world.sleeper),
        nodes(client, kube::kNodes, {}, kube::ParseNode, world.scheduler, world.sleeper),
        budgets(client,
                kube::kPodDisruptionBudgets,
                {},
                kube::ParseBudget,
                world.scheduler,
                world.sleeper),
        events(client, {.component = "adamant", .instance = "x"}, world.scheduler, world.sleeper) {}

  JobCache jobs;
  PodCache pods;
  NodeCache nodes;
  BudgetCache budgets;
  kube::EventRecorder events;
  std::vector<Feed> feeds;

  [[nodiscard]] bool synced() const {
    return jobs.synced() && pods.synced() && nodes.synced() && budgets.synced();
  }

  [[nodiscard]] kube::JobObjects ObjectsOf(const std::string& job_uid, bool spreads) const {
    return {.pods = pods.ByIndex(kByJob, job_uid),
            .node_of =
                [this](const std::string& name) {
                  return nodes.Get({"", name});
                },
            .budgets = budgets.ByIndex(kByJob, job_uid),
            .all_nodes =
                [this, spreads] {
                  return spreads ? nodes.All()
                                 : std::vector<std::shared_ptr<const kube::NodeView>>();
                }};
  }
};

OperatorProcess::OperatorProcess(World& world, Network& network, std::string name)
    : world_(world),
      network_(network),
      name_(std::move(name)),
      transport_(world),
      client_(world.ClientOn(transport_)) {
  Start();
}

OperatorProcess::~OperatorProcess() { StandDown(); }

void OperatorProcess::Start() {
  world_.scheduler.Record(name_, "starts");
  life_ = std::make_shared<Life>(Life{.name = name_});
  transport_.SetDead(false);
  process_ = std::make_unique<ProcessState>(world_, client_);
  process_->jobs.AddHandler(
      [this](const JobCache::Change& change) { Wake(kube::ToString(change.key), {}); });
  process_->pods.AddIndex(kByJob,
                          [](const kube::PodView& pod) { return std::vector{pod.job_uid}; });
  process_->pods.AddHandler([this](const PodCache::Change& change) {
    const kube::PodView& pod = change.after != nullptr ? *change.after : *change.before;
    Wake(kube::ToString(kube::ObjectKey{change.key.ns, pod.job_name}), {});
  });
  process_->nodes.AddHandler([this](const auto& /*change*/) { Wake(kube::ToString(kJobKey), {}); });
  process_->budgets.AddIndex(
      kByJob, [](const kube::BudgetView& budget) { return std::vector{budget.job_uid}; });
  process_->budgets.AddHandler(
      [this](const auto& /*change*/) { Wake(kube::ToString(kJobKey), {}); });
  process_->feeds = {
      {.collection = "/apis/adamant.dev/v1alpha1/trainingjobs",
       .step = [this] { return process_->jobs.Step(); }},
      {.collection = "/api/v1/pods", .step = [this] { return process_->pods.Step(); }},
      {.collection = "/api/v1/nodes", .step = [this] { return process_->nodes.Step(); }},
      {.collection = "/apis/policy/v1/poddisruptionbudgets",
       .step = [this] { return process_->budgets.Step(); }}};
}

void OperatorProcess::Lead() {
  candidate_ = true;
  TryToLead();
}

void OperatorProcess::TryToLead() {
  if (leads() || !candidate_) {
    return;
  }
  if (dead() || !process_->synced()) {
    return world_.scheduler.After(milliseconds(100), nullptr, [this] { TryToLead(); });
  }
  world_.scheduler.Record(name_, "leads");
  hub_ = std::make_unique<Hub>(network_);
  context_ = std::make_unique<kube::ReconcilerContext>(kube::ReconcilerContext{
      .client = client_,
      .control = *hub_,
      .events = process_->events,
      .clock = world_.scheduler,
      .pods = {.image = {.name = "adamant"}, .control_service = "adamant-control:7070"},
      .new_id = [this] { return world_.ids(); }});
  reconcilers_ = std::make_unique<kube::JobReconcilers>(
      *context_, [this](const std::string& key) { Wake(key, {}); });
  for (const auto& job : process_->jobs.All()) {
    Wake(kube::ToString(job->key), {});
  }
}

void OperatorProcess::StandDown() {
  candidate_ = false;
  if (!leads()) {
    return;
  }
  world_.scheduler.Record(name_, "leads no more");
  reconcilers_ = nullptr;
  hub_ = nullptr;
  context_ = nullptr;
  planned_.clear();
  failures_.clear();
}

void OperatorProcess::Crash() {
  if (dead()) {
    return;
  }
  world_.scheduler.Record(name_, "crashes");
  ++crashes_;
  transport_.SetDead(true);
  if (hub_ != nullptr) {
    hub_->Mute();
  }
  StandDown();
  life_->ended = true;
  process_ = nullptr;
  world_.scheduler.After(
      world_.scheduler.Random(milliseconds(500), seconds(5)), nullptr, [this] { Start(); });
}

// The code that is running goes on to its end, but nobody hears of it.
void OperatorProcess::CrashAtWrite(std::size_t n, bool after) {
  transport_.CrashAtWrite(n, after, [this] {
    if (hub_ != nullptr) {
      hub_->Mute();
    }
  });
}

void OperatorProcess::Lag(Clock::Duration lag, Clock::Duration time) {
  lag_ = lag;
  lags_until_ = world_.scheduler.Now() + time;
}

void OperatorProcess::OnApiChanged() {
  if (dead()) {
    return;
  }
  for (std::size_t i = 0; i < process_->feeds.size(); ++i) {
    const Feed& feed = process_->feeds[i];
    if (!feed.planned && (!feed.synced || feed.seen != world_.changed[feed.collection])) {
      Plan(i);
    }
  }
}

void OperatorProcess::Plan(std::size_t feed) {
  const Clock::TimePoint now = world_.scheduler.Now();
  const auto most = now < lags_until_ ? lag_ : Clock::Duration(milliseconds(20));
  const auto delay = world_.scheduler.Random(milliseconds(1), most);
  process_->feeds[feed].planned = true;
  world_.scheduler.At(std::max(now + delay, process_->feeds[feed].not_before), life_, [this, feed] {
    Feed& at = process_->feeds[feed];
    const std::uint64_t version = world_.changed[at.collection];
    const Clock::Duration wait = at.step();
    at.planned = false;
    at.not_before = world_.scheduler.Now() + wait;
    if (wait == Clock::Duration{}) {
      at.seen = version;
      at.synced = true;
    }
  });
}

void OperatorProcess::Wake(const std::string& key, Clock::Duration delay) {
  if (!leads()) {
    return;
  }
  const Clock::TimePoint time =
      world_.scheduler.Now() + std::max<Clock::Duration>(delay, milliseconds(1));
  Clock::TimePoint& planned = planned_.emplace(key, Clock::TimePoint::max()).first->second;
  if (planned <= time) {
    return;
  }
  planned = time;
  world_.scheduler.At(time, life_, [this, key, time] {
    if (const auto found = planned_.find(key); found != planned_.end() && found->second == time) {
      planned_.erase(found);
      Work(key);
    }
  });
}

void OperatorProcess::Work(const std::string& key) {
  const kube::ObjectKey at = kube::ParseObjectKey(key).value();
  const auto view = process_->jobs.Get(at);
  if (view == nullptr || view->deleting) {
    return reconcilers_->Drop(at);
  }
  const auto next = reconcilers_->Work(view, process_->ObjectsOf(view->uid, world_.spreads));
  process_->events.Step();
  if (transport_.dead()) {
    return Crash();
  }
  if (!next.ok()) {
    int& failures = failures_[key];
    world_.scheduler.Record(name_, std::string(next.status().message()));
    return Wake(
        key,
        std::min<Clock::Duration>(kFirstRetry * (1 << std::min(failures++, 9)), kLongestRetry));
  }
  failures_.erase(key);
  if (*next != Clock::TimePoint::max()) {
    Wake(key, *next - world_.scheduler.Now());
  }
}

}  // namespace adamant::orchestration
