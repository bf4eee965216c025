#include "operator/kube/job/operator.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/certificates/refusal_log.h"
#include "operator/kube/status/job_status.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/log.h"
#include "services/common/rpc/tls/server_security.h"
#include "services/common/security/identity_store.h"

namespace adamant::kube {
namespace {

constexpr char kByJob[] = "job";
constexpr char kByJobName[] = "job name";  // with its namespace
constexpr char kByNode[] = "node";
constexpr char kSweep[] = "";  // in the queue, in place of a job's key
constexpr std::chrono::minutes kFirstSweep{1};
constexpr std::chrono::minutes kNextSweep{1};  // after one that has found something
constexpr std::chrono::minutes kSweepInterval{10};

CertificateObserver::Refusal RefusalOf(control::Mismatch mismatch) {
  switch (mismatch) {
    case control::Mismatch::kRole:
      return CertificateObserver::Refusal::kWrongRole;
    case control::Mismatch::kSlot:
      return CertificateObserver::Refusal::kWrongSlot;
    case control::Mismatch::kGeneration:
      return CertificateObserver::Refusal::kReplaced;
    case control::Mismatch::kJob:
    case control::Mismatch::kNone:
      return CertificateObserver::Refusal::kWrongJob;
  }
  return CertificateObserver::Refusal::kWrongJob;
}

control::SecuredListener SecuredListenerOf(
    const OperatorSecurity& settings,
    const std::shared_ptr<const security::IdentityStore>& identity,
    const Clock& clock) {
  const auto log = std::make_shared<RefusalLog>(clock);
  const auto count = [observer = settings.observer](CertificateObserver::Refusal reason) {
    if (observer != nullptr) {
      observer->OnRefused(reason);
    }
  };
  control::SecuredListener listener{.address = settings.control_listen,
                                    .security = {.identity = identity}};
  listener.security.on_refused = [log, count](const rpc::Refusal& refusal) {
    log->Tell(refusal.peer, refusal.why);
    count(refusal.peer.empty() ? CertificateObserver::Refusal::kNoCertificate
                               : CertificateObserver::Refusal::kWrongRole);
  };
  listener.on_mismatch = [log, count](control::Mismatch mismatch) {
    log->Tell("a member", "Join says another " + control::FieldName(mismatch));
    count(RefusalOf(mismatch));
  };
  return listener;
}

// Who is who, as the caches show it. Both must outlive what is returned.
PodIdentities::Sources SourcesOf(const Informers<JobView>& jobs, const Informers<PodView>& pods) {
  return {.pod = [&pods](const ObjectKey& key) { return pods.Get(key); },
          .pods_of = [&pods](const std::string& uid) { return pods.ByIndex(kByJob, uid); },
          .uid_of =
              [&jobs](const ObjectKey& key) {
                const auto job = jobs.Get(key);
                return job != nullptr ? job->uid : "";
              }};
}

}  // namespace

Operator::Operator(const Client& client,
                   const Client& lease_client,
                   const Clock& clock,
                   Sleeper& sleeper,
                   OperatorOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      jobs_(client, {kTrainingJobs, options_.namespaces}, {}, ParseJobObject, clock, sleeper),
      pods_(client,
            {kPods, options_.namespaces},
            {.selection = {.label_selector = kOursSelector}},
            ParsePod,
            clock,
            sleeper),
      budgets_(client,
               {kPodDisruptionBudgets, options_.namespaces},
               {.selection = {.label_selector = kOursSelector}},
               ParseBudget,
               clock,
               sleeper),
      events_(client, {.component = kFieldManager, .instance = options_.identity}, clock, sleeper),
      election_(lease_client,
                {.lease = {options_.name_space, "adamant-operator"}, .identity = options_.identity},
                {.started = [this](std::int64_t /*transitions*/) { OnStarted(); },
                 .lost = [] { LogWarning("the lease could not be renewed"); },
                 .stopped = [this] { OnStopped(); },
                 .new_leader =
                     [](const std::string& identity) {
                       LogInfo("leader", {{"identity", identity}});
                     }},
                clock,
                sleeper) {
  if (options_.namespaces.empty()) {
    nodes_.emplace(client, kNodes, InformerOptions{}, ParseNode, clock, sleeper);
  }
  if (options_.security) {
    const OperatorSecurity& security = *options_.security;
    issuer_.emplace(client,
                    CertificateIssuer::Options{.secret = {options_.name_space, security.secret},
                                               .issuer_secret = security.issuer_secret,
                                               .trust_domain = security.trust_domain,
                                               .life = security.certificate_life,
                                               .listen = security.certificates_listen,
                                               .observer = security.observer},
                    SourcesOf(jobs_, pods_),
                    clock,
                    sleeper);
  }
  AddHandlers();
}

void Operator::AddHandlers() {
  jobs_.AddHandler([this](const Informer<JobView>::Change& change) { Wake(change.key); });
  pods_.AddIndex(kByJob, [](const PodView& pod) { return std::vector{pod.job_uid}; });
  pods_.AddIndex(kByJobName, [](const PodView& pod) {
    return std::vector{ToString(ObjectKey{pod.ns, pod.job_name})};
  });
  pods_.AddIndex(kByNode, [](const PodView& pod) { return std::vector{pod.node}; });
  pods_.AddHandler([this](const Informer<PodView>::Change& change) {
    const PodView& pod = change.after != nullptr ? *change.after : *change.before;
    Wake({pod.ns, pod.job_name});
  });
  if (nodes_) {
    nodes_->AddHandler([this](const Informer<NodeView>::Change& change) {
      const bool told = change.before != nullptr && change.after != nullptr;
      if (!told || *change.before != *change.after) {  // else it is only alive
        WakeJobsOn(change.key.name);
      }
    });
  }
  budgets_.AddIndex(kByJob, [](const BudgetView& budget) { return std::vector{budget.job_uid}; });
  budgets_.AddHandler([this](const Informer<BudgetView>::Change& change) {
    const BudgetView& budget = change.after != nullptr ? *change.after : *change.before;
    Wake({change.key.ns, budget.job_name});
  });
}

void Operator::Wake(const ObjectKey& job) {
  const MutexLock lock(mutex_);
  if (queue_ != nullptr) {
    queue_->Add(ToString(job));
  }
}

void Operator::WakeJobsOn(const std::string& node) {
  for (const auto& pod : pods_.ByIndex(kByNode, node)) {
    Wake({pod->ns, pod->job_name});
  }
}

JobObjects Operator::ObjectsOf(const JobView& view) const {
  JobObjects objects{.pods = pods_.ByIndex(kByJob, view.uid),
                     .budgets = budgets_.ByIndex(kByJob, view.uid),
                     .sees_cluster = nodes_.has_value()};
  if (nodes_) {
    objects.node_of = [this](const std::string& name) { return nodes_->Get({"", name}); };
    objects.all_nodes = [this] { return nodes_->All(); };
  }
  return objects;
}

Operator::~Operator() { Stop(); }

bool Operator::leads() const {
  const MutexLock lock(mutex_);
  return queue_ != nullptr;
}

// With what it does not see it can neither give up a lost node early nor spread copies over zones.
void Operator::LogReach() const {
  if (options_.namespaces.empty()) {
    return LogInfo("leads the jobs of all namespaces");
  }
  std::string names;
  for (const std::string& name : options_.namespaces) {
    names += (names.empty() ? "" : ",") + name;
  }
  LogInfo("leads the jobs of some namespaces",
          {{"namespaces", names}, {"unseen", "nodes, persistent volumes, storage classes"}});
}

void Operator::Start() {
  LogReach();
  jobs_.Start();
  pods_.Start();
  if (nodes_) {
    nodes_->Start();
  }
  budgets_.Start();
  events_.Start();
  if (issuer_) {
    issuer_->Start([this] {
      const MutexLock leadership(leadership_mutex_);
      ListenSecured();
    });
  }
  election_.Start();
}

void Operator::Stop() {
  {
    const MutexLock leadership(leadership_mutex_);
    if (std::exchange(stopped_, true)) {
      return;
    }
  }
  OnStopped();
  election_.Stop();
  if (issuer_) {
    issuer_->Stop();
  }
  events_.Stop();
  budgets_.Stop();
  if (nodes_) {
    nodes_->Stop();
  }
  pods_.Stop();
  jobs_.Stop();
}

bool Operator::WaitUntilReady(std::chrono::milliseconds timeout) const {
  return jobs_.WaitUntilSynced(timeout) && pods_.WaitUntilSynced(timeout) &&
         (!nodes_ || nodes_->WaitUntilSynced(timeout)) && budgets_.WaitUntilSynced(timeout);
}

void Operator::OnStarted() {
  const MutexLock leadership(leadership_mutex_);
  if (stopped_ || leads()) {
    return;  // led already: the lease was won again, and nobody had it meanwhile
  }
  if (issuer_) {
    issuer_->SetLeads(true);
  }
  while (!ready()) {
    if (!WaitUntilReady(std::chrono::seconds(1))) {
      LogInfo("waiting for the cluster's jobs, pods, nodes and budgets");
    }
  }
  auto control = control::StartControlServer(options_.control_listen);
  if (!control.ok()) {
    LogError("cannot listen for control streams", {{"error", control.status().ToString()}});
    return;
  }
  control_ = *std::move(control);
  context_ =
      std::make_unique<ReconcilerContext>(ReconcilerContext{.client = client_,
                                                            .control = *control_,
                                                            .events = events_,
                                                            .clock = clock_,
                                                            .pods = SettingsOfPods(),
                                                            .observer = options_.job_observer});
  const auto queue = std::make_shared<WorkQueue>(clock_, WorkQueueOptions(), options_.observer);
  reconcilers_ = std::make_unique<JobReconcilers>(
      *context_, [queue](const std::string& key) { queue->Add(key); });
  sweep_ = std::make_unique<OrphanSweep>(
      client_, options_.namespaces, [this](const ObjectKey& key, const std::string& uid) {
        const auto job = jobs_.Get(key);
        return job != nullptr && job->uid == uid;
      });
  {
    const MutexLock lock(mutex_);
    queue_ = queue;
  }
  LogInfo("leads", {{"control", control_->address()}});
  ListenSecured();
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this] { WorkLoop(); });
  }
  EnqueueAll();
  queue->AddAfter(kSweep, kFirstSweep);
}

PodSettings Operator::SettingsOfPods() const {
  PodSettings settings = options_.pods;
  if (issuer_) {
    settings.security = PodSecurity{.control_service = options_.security->control_service,
                                    .certificates = options_.security->certificates_service,
                                    .trust_domain = options_.security->trust_domain,
                                    .roots = [this] { return issuer_->roots(); }};
  }
  return settings;
}

// Once it both leads and has a certificate.
void Operator::ListenSecured() {
  if (!issuer_ || !leads() || issuer_->identity()->Get() == nullptr) {
    return;
  }
  absl::Status status =
      control_->Listen(SecuredListenerOf(*options_.security, issuer_->identity(), clock_));
  status.Update(issuer_->Serve());
  if (!status.ok()) {
    return LogError("cannot listen for TLS", {{"error", status.ToString()}});
  }
  LogInfo("listens for TLS",
          {{"control", control_->secured_address()}, {"certificates", issuer_->address()}});
}

void Operator::OnStopped() {
  const MutexLock leadership(leadership_mutex_);
  std::shared_ptr<WorkQueue> queue;
  {
    const MutexLock lock(mutex_);
    queue = std::exchange(queue_, nullptr);
  }
  if (issuer_) {
    issuer_->SetLeads(false);
  }
  if (queue == nullptr) {
    return;
  }
  if (issuer_) {
    issuer_->StopServing();
  }
  queue->ShutDown();
  workers_.clear();
  sweep_.reset();
  reconcilers_.reset();
  control_->Stop();
  if (options_.job_observer != nullptr) {
    options_.job_observer->OnAllGone();
  }
  context_.reset();
  control_.reset();
  LogInfo("leads no more");
}

OperatorCounts Operator::Counts() const {
  OperatorCounts counts;
  for (const auto& job : jobs_.All()) {
    const v1::RolesStatus& roles = job->status->roles();
    const bool is_on = job->status->has_start_time() && !job->status->has_completion_time();
    const bool is_plain = job->status->security().mode() != v1::SecurityStatus::MODE_T_L_S;
    counts.plain_jobs += is_on && is_plain ? 1 : 0;
    ++counts.jobs[std::string(PhaseText(*job->status))];
    counts.members += static_cast<std::size_t>(std::max<std::int64_t>(
        0,
        roles.worker().ready() + roles.data_server().ready() + roles.parameter_server().ready()));
  }
  return counts;
}

void Operator::Tell(OperatorObserver::Outcome outcome) const {
  if (options_.observer != nullptr) {
    options_.observer->OnReconciled(outcome);
  }
}

void Operator::EnqueueAll() {
  for (const auto& job : jobs_.All()) {
    const MutexLock lock(mutex_);
    queue_->Add(ToString(job->key));
  }
}

void Operator::WorkLoop() {
  std::shared_ptr<WorkQueue> queue;
  {
    const MutexLock lock(mutex_);
    queue = queue_;
  }
  while (queue != nullptr) {
    const std::optional<std::string> key = queue->Take();
    if (!key) {
      return;
    }
    Work(*key);
    queue->Done(*key);
  }
}

// Of a job that is gone, or going: what Kubernetes deletes is not to be held up.
void Operator::LetPodsGo(const ObjectKey& job, WorkQueue& queue) {
  PodViews pods = pods_.ByIndex(kByJobName, ToString(job));
  std::erase_if(pods, [&](const auto& pod) { return !pod->pod.deleting; });
  const absl::Status told = EndGroups(client_, pods);
  if (!told.ok()) {
    LogWarning("pods of a deleted job may stay",
               {{"job", ToString(job)}, {"error", told.ToString()}});
    queue.Retry(ToString(job));
  }
}

void Operator::Work(const std::string& key) {
  std::shared_ptr<WorkQueue> queue;
  {
    const MutexLock lock(mutex_);
    queue = queue_;
  }
  if (queue == nullptr) {
    return;
  }
  if (key == kSweep) {
    sweep_->Sweep();
    return queue->AddAfter(kSweep, sweep_->has_found() ? kNextSweep : kSweepInterval);
  }
  const auto parsed = ParseObjectKey(key);
  if (!parsed.ok()) {
    return;  // no handler makes such a key
  }
  const auto view = jobs_.Get(*parsed);
  if (view == nullptr || view->deleting) {
    queue->Forget(key);  // another job of that name begins anew
    reconcilers_->Drop(*parsed);
    return LetPodsGo(*parsed, *queue);
  }
  const auto next = reconcilers_->Work(view, ObjectsOf(*view));
  if (!next.ok()) {
    LogWarning("work to be repeated", {{"job", key}, {"error", next.status().ToString()}});
    Tell(OperatorObserver::Outcome::kError);
    return queue->Retry(key);
  }
  queue->Forget(key);
  const bool later = *next != Clock::TimePoint::max();
  Tell(later ? OperatorObserver::Outcome::kLater : OperatorObserver::Outcome::kSuccess);
  if (later) {
    queue->AddAfter(key, std::max(*next - clock_.Now(), Clock::Duration::zero()));
  }
}

}  // namespace adamant::kube
