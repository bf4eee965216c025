#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/kube_client/base/json.h"
#include "tests/simulation/operator/checker.h"
#include "tests/simulation/operator/world/world.h"

namespace adamant::orchestration {

/// Who applies, suspends and deletes the job, and makes pods that have nothing to do with it.
class User {
 public:
  /// How the job looks like is a matter of chance.
  User(World& world, Checker& checker);

  /// The job is to have more epochs than anybody waits for.
  void WantForever();
  [[nodiscard]] bool wants_forever() const { return forever_; }

  /// The job gives up its pods where not all of them start in this time.
  void WantStartWithin(seconds time);

  /// `changes` are merged into the spec.
  void Apply(const kube::Json& changes = kube::Json::object());
  void Delete();

  void Suspend() { SetSuspended(true); }
  void SuspendFor(Clock::Duration time);
  void Resume();

  /// Deletes the job and makes another one of the same name as soon as that is possible. Not often.
  void Recreate();

  /// Wants another number of workers.
  void Scale();

  /// Makes pods under names that the job may want next.
  void OccupyNames(Clock::Duration time);

  /// UID of the job; empty: there is none.
  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] std::uint32_t copies() const { return copies_; }
  [[nodiscard]] std::uint32_t restart_limit() const { return restart_limit_; }
  [[nodiscard]] std::string Describe() const { return spec_.dump(); }

  /// "Succeeded", as its status says.
  [[nodiscard]] std::string PhaseNow() const;
  [[nodiscard]] bool HasEnded() const;

  /// What there is of the job in the API: kinds and names.
  [[nodiscard]] std::vector<std::string> Belongings() const;

  /// The job has a pod for each worker that it wants; more than that.
  [[nodiscard]] bool HasItsWorkers() const;
  [[nodiscard]] bool HasSurplusWorkers() const;

 private:
  void SetSuspended(bool suspended);
  [[nodiscard]] kube::Json SomeRules();
  [[nodiscard]] std::multiset<std::int64_t> WorkerSlots() const;
  [[nodiscard]] std::multiset<std::int64_t> WantedSlots() const;
  [[nodiscard]] kube::Json Get() const;

  World& world_;
  Checker& checker_;
  kube::Json spec_;
  std::uint32_t copies_ = 0;
  std::uint32_t restart_limit_ = 0;
  std::string uid_;
  int recreated_ = 0;
  bool forever_ = false;
};

}  // namespace adamant::orchestration
