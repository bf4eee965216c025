#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/control/control_server.h"
#include "operator/kube/certificates/certificate_issuer.h"
#include "operator/kube/certificates/certificate_observer.h"
#include "operator/kube/job/job_observer.h"
#include "operator/kube/job/job_reconciler.h"
#include "operator/kube/job/job_reconcilers.h"
#include "operator/kube/job/orphan_sweep.h"
#include "operator/kube/pods/objects/pod_settings.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube/status/job_objects.h"
#include "operator/kube/status/job_view.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/event_recorder.h"
#include "operator/kube_client/api/leader_election.h"
#include "operator/kube_client/base/work_queue.h"
#include "operator/kube_client/cache/informer.h"
#include "operator/kube_client/cache/informers.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// Is told of an operator's work. Threads: any; the WorkQueueObserver's calls must be quick.
class OperatorObserver : public WorkQueueObserver {
 public:
  enum class Outcome : std::uint8_t {
    kSuccess,  ///< nothing is to be done until something happens
    kLater,    ///< to be called again at some time
    kError,    ///< to be tried again
  };
  virtual void OnReconciled(Outcome outcome) = 0;
};

struct OperatorCounts {
  std::map<std::string, std::size_t> jobs;  ///< by phase: "Running"; "New": nobody has seen it
  std::size_t plain_jobs = 0;               ///< that have begun without TLS, and not ended
  std::size_t members = 0;                  ///< processes that have joined a job
};

/// Settings of TLS between the processes of jobs, and with operators.
struct OperatorSecurity {
  std::string secret = "adamant-ca";  ///< of the authority, in the operators' namespace
  std::string issuer_secret{};        ///< there, of the certificate that signs; empty: own roots
  std::string trust_domain = "adamant.local";                     ///< whose authority it is
  std::chrono::seconds certificate_life{std::chrono::hours(24)};  ///< of certificates
  std::string control_listen;               ///< host:port of control streams by TLS
  std::string control_service;              ///< where pods find that of all operators
  std::string certificates_listen;          ///< host:port where certificates are issued
  std::string certificates_service;         ///< where pods find that of all operators
  CertificateObserver* observer = nullptr;  ///< must outlive the operator; null: none
};

struct OperatorOptions {
  std::string name_space;      ///< where its lease is
  std::string identity;        ///< unique among operators: the pod's name
  std::string control_listen;  ///< host:port of control streams without TLS, while it leads
  PodSettings pods;            ///< without security, which follows from that below
  std::optional<OperatorSecurity> security{};  ///< none: jobs begin without TLS
  /// Namespaces whose jobs it leads; empty: all. With some it asks for nothing that is in no
  /// namespace.
  std::vector<std::string> namespaces;
  int workers = 16;  ///< jobs that are worked on at a time; each waits for the API now and then
  OperatorObserver* observer = nullptr;  ///< must outlive the operator; null: none
  JobObserver* job_observer = nullptr;   ///< likewise
};

/// Leads the TrainingJobs of a cluster, or of some of its namespaces, while it holds the operators'
/// lease.
/// Threads: Start, Stop and the destructor by one; the others by any.
class Operator {
 public:
  /// `lease_client` has a rate limit of its own, so that the lease is renewed however much else is
  /// to be done. `clock` and `sleeper` must outlive this.
  Operator(const Client& client,
           const Client& lease_client,
           const Clock& clock,
           Sleeper& sleeper,
           OperatorOptions options);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  void Start();

  /// Takes no more work, finishes what was begun, and gives the lease up last. Idempotent.
  void Stop();

  /// Returns true if it knows all jobs, pods, nodes and budgets that it looks at.
  [[nodiscard]] bool ready() const {
    return jobs_.synced() && pods_.synced() && (!nodes_ || nodes_->synced()) && budgets_.synced();
  }
  [[nodiscard]] bool leads() const;

  /// Of all jobs that it looks at, as they were last seen.
  [[nodiscard]] OperatorCounts Counts() const;

 private:
  void AddHandlers();
  void Wake(const ObjectKey& job);
  void WakeJobsOn(const std::string& node);
  [[nodiscard]] bool WaitUntilReady(std::chrono::milliseconds timeout) const;
  void LogReach() const;
  [[nodiscard]] JobObjects ObjectsOf(const JobView& view) const;
  void OnStarted();
  void OnStopped();
  [[nodiscard]] PodSettings SettingsOfPods() const;
  void ListenSecured() ABSL_EXCLUSIVE_LOCKS_REQUIRED(leadership_mutex_);
  void EnqueueAll();
  void WorkLoop();
  void LetPodsGo(const ObjectKey& job, WorkQueue& queue);
  void Work(const std::string& key);
  void Tell(OperatorObserver::Outcome outcome) const;

  const Client client_;
  const Clock& clock_;
  const OperatorOptions options_;

  Informers<JobView> jobs_;
  Informers<PodView> pods_;
  std::optional<Informer<NodeView>> nodes_;  // where it looks at all namespaces
  Informers<BudgetView> budgets_;
  EventRecorder events_;
  std::optional<CertificateIssuer> issuer_;  // where jobs use TLS
  LeaderElection election_;

  Mutex leadership_mutex_;  // held while it begins or ceases to lead; taken before the other

  mutable Mutex mutex_;
  // Of the present leadership; null while it does not lead.
  std::shared_ptr<WorkQueue> queue_ ABSL_GUARDED_BY(mutex_);

  // These change only while there are no workers.
  std::unique_ptr<control::ControlServer> control_;
  std::unique_ptr<ReconcilerContext> context_;
  std::unique_ptr<JobReconcilers> reconcilers_;
  std::unique_ptr<OrphanSweep> sweep_;
  std::vector<std::jthread> workers_ ABSL_GUARDED_BY(leadership_mutex_);
  bool stopped_ ABSL_GUARDED_BY(leadership_mutex_) = false;
};

}  // namespace adamant::kube
