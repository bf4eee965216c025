#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/kube/job/job_reconcilers.h"
#include "operator/kube/status/job_view.h"
#include "operator/kube_client/api/event_recorder.h"
#include "operator/kube_client/cache/informer.h"
#include "tests/simulation/operator/cluster/network.h"
#include "tests/simulation/operator/cluster/operator_transport.h"

namespace adamant::orchestration {

/// One operator: caches that lag behind the API, and the reconcilers of all jobs while it leads.
/// Does what kube::Operator does, in one thread and in virtual time.
class OperatorProcess {
 public:
  OperatorProcess(World& world, Network& network, std::string name);
  ~OperatorProcess();
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  /// Leads as soon as it is alive and its caches are full.
  void Lead();

  /// Leads no more, nor wants to.
  void StandDown();
  [[nodiscard]] bool leads() const { return reconcilers_ != nullptr; }

  /// Its process dies and, later, starts anew.
  void Crash();

  /// … at the `n`th write from now, before it is sent or after it took effect.
  void CrashAtWrite(std::size_t n, bool after);
  [[nodiscard]] bool dead() const { return process_ == nullptr; }
  [[nodiscard]] int crashes() const { return crashes_; }

  /// Called after every event: lets its caches follow, each at its own pace.
  void OnApiChanged();

  /// From now on this long, caches are behind by up to `lag`.
  void Lag(Clock::Duration lag, Clock::Duration time);

  OperatorTransport& transport() { return transport_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  // A cache and when it is brought up to date.
  struct Feed {
    std::string collection;  // its path
    std::function<Clock::Duration()> step;
    std::uint64_t seen = 0;
    bool synced = false;
    Clock::TimePoint not_before{};
    bool planned = false;
  };

  void Start();
  void TryToLead();
  void Plan(std::size_t feed);
  void Wake(const std::string& key, Clock::Duration delay);
  void Work(const std::string& key);

  World& world_;
  Network& network_;
  const std::string name_;
  OperatorTransport transport_;
  const kube::Client client_;

  LifePtr life_;  // of its process
  int crashes_ = 0;
  Clock::Duration lag_{milliseconds(20)};
  Clock::TimePoint lags_until_{};

  struct ProcessState;  // what is lost with the process
  std::unique_ptr<ProcessState> process_;
  bool candidate_ = false;
  std::unique_ptr<Hub> hub_;  // while it leads
  std::unique_ptr<kube::ReconcilerContext> context_;
  std::unique_ptr<kube::JobReconcilers> reconcilers_;
  std::map<std::string, Clock::TimePoint> planned_;  // work, by key
  std::map<std::string, int> failures_;
};

}  // namespace adamant::orchestration
