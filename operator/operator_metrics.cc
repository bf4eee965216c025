#include "operator/operator_metrics.h"

#include <string_view>
#include <vector>

#include "services/common/base/seconds.h"

namespace adamant {
namespace {

// From a millisecond to half a minute; 50 ms, 0.1 s and 1 s, which targets name, are among them.
std::vector<double> Bounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
}

bool CreatesPod(const kube::HttpRequest& request, int code) {
  const std::string_view target = request.target;
  const std::string_view path = target.substr(0, target.find('?'));
  const bool is_dry_run = target.find("dryRun=") != std::string_view::npos;
  return request.method == "POST" && code == 201 && path.ends_with("/pods") && !is_dry_run;
}

}  // namespace

OperatorMetrics::OperatorMetrics(metrics::Registry& registry)
    : registry_(registry),
      adds_(registry.AddCounter("workqueue_adds_total",
                                "Times that a job was put into the work queue.",
                                {{"name", "trainingjob"}})),
      depth_(registry.AddGauge(
          "workqueue_depth", "Jobs that wait for a worker.", {{"name", "trainingjob"}})),
      active_workers_(registry.AddGauge("controller_runtime_active_workers",
                                        "Jobs that are being worked on.",
                                        {{"controller", "trainingjob"}})),
      retries_(registry.AddCounter("workqueue_retries_total",
                                   "Jobs that were put into the queue again after a failure.",
                                   {{"name", "trainingjob"}})),
      waiting_(registry.AddHistogram("workqueue_queue_duration_seconds",
                                     "Time that a job waits for a worker.",
                                     Bounds(),
                                     {{"name", "trainingjob"}})),
      reconciling_(registry.AddHistogram("controller_runtime_reconcile_time_seconds",
                                         "Time that a worker works on a job.",
                                         Bounds(),
                                         {{"controller", "trainingjob"}})),
      outcomes_{{Outcome::kSuccess,
                 registry.AddCounter("controller_runtime_reconcile_total",
                                     "Times that a job was worked on, by how that ended.",
                                     {{"controller", "trainingjob"}, {"result", "success"}})},
                {Outcome::kLater,
                 registry.AddCounter("controller_runtime_reconcile_total",
                                     "Times that a job was worked on, by how that ended.",
                                     {{"controller", "trainingjob"}, {"result", "requeue_after"}})},
                {Outcome::kError,
                 registry.AddCounter("controller_runtime_reconcile_total",
                                     "Times that a job was worked on, by how that ended.",
                                     {{"controller", "trainingjob"}, {"result", "error"}})}},
      pods_(registry.AddCounter("adamant_operator_pods_created_total", "Pods that were created.")),
      leader_(registry.AddGauge("leader_election_master_status",
                                "1 for the operator that leads, else 0.",
                                {{"name", "adamant-operator"}})),
      members_(registry.AddGauge(
          "adamant_operator_members",
          "Processes that have joined their jobs, each by a control stream; of who leads.")),
      plain_jobs_(registry.AddGauge("adamant_operator_plaintext_jobs",
                                    "Jobs that run without TLS; of who leads.")) {}

void OperatorMetrics::OnRequest(const kube::HttpRequest& request,
                                int code,
                                bool stream,
                                Clock::Duration took) {
  if (CreatesPod(request, code)) {
    pods_.Increment();
  }
  const std::string text = code == 0 ? "<error>" : std::to_string(code);
  const MutexLock lock(mutex_);
  auto counter = requests_.find({request.method, code});
  if (counter == requests_.end()) {
    counter = requests_
                  .emplace(std::pair(request.method, code),
                           registry_.AddCounter(
                               "rest_client_requests_total",
                               "Requests to the Kubernetes API, by the code that was answered.",
                               {{"code", text}, {"method", request.method}}))
                  .first;
  }
  counter->second.Increment();
  if (stream) {
    return;  // lasts as long as it is wanted
  }
  auto duration = durations_.find(request.method);
  if (duration == durations_.end()) {
    duration = durations_
                   .emplace(request.method,
                            registry_.AddHistogram("rest_client_request_duration_seconds",
                                                   "Time of requests to the Kubernetes API, but "
                                                   "for watches.",
                                                   Bounds(),
                                                   {{"verb", request.method}}))
                   .first;
  }
  duration->second.Observe(Seconds(took));
}

void OperatorMetrics::OnTaken(Clock::Duration waited) {
  active_workers_.Add(1);
  waiting_.Observe(Seconds(waited));
}

void OperatorMetrics::OnDone(Clock::Duration worked) {
  active_workers_.Add(-1);
  reconciling_.Observe(Seconds(worked));
}

void OperatorMetrics::OnReconciled(Outcome outcome) { outcomes_.at(outcome).Increment(); }

void OperatorMetrics::Look(const kube::Operator& op) {
  const kube::OperatorCounts counts = op.Counts();
  leader_.Set(op.leads() ? 1 : 0);
  members_.Set(op.leads() ? static_cast<double>(counts.members) : 0);
  plain_jobs_.Set(op.leads() ? static_cast<double>(counts.plain_jobs) : 0);
  for (auto& [phase, gauge] : jobs_) {
    gauge.Set(0);
  }
  if (!op.leads()) {
    return;  // the leader counts them: two that did would be summed up
  }
  for (const auto& [phase, jobs] : counts.jobs) {
    auto gauge = jobs_.find(phase);
    if (gauge == jobs_.end()) {
      gauge = jobs_
                  .emplace(phase,
                           registry_.AddGauge("adamant_operator_jobs",
                                              "Jobs in the cluster, by phase.",
                                              {{"phase", phase}}))
                  .first;
    }
    gauge->second.Set(static_cast<double>(jobs));
  }
}

}  // namespace adamant
