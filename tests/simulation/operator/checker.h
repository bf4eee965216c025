#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operator/core/state/state.h"
#include "tests/fakes/kube/memory_api_store.h"
#include "tests/simulation/operator/cluster/nodes.h"
#include "tests/simulation/operator/loss_book.h"
#include "tests/simulation/operator/world/world.h"

namespace adamant::orchestration {

/// Looks at every change in the API, and reports what must never happen:
///   - a second pod for a (job, slot, generation), but by a request that cannot be called back, or
///     whose sender cannot know of the first;
///   - a term that falls, or that two operators write under; a record that changes without its
///     epoch rising, or an epoch that falls; an epoch's result that changes;
///   - a restart that is forgotten, or counted twice, or otherwise than the failure rules say;
///   - a pod of somebody else that the operator deletes.
class Checker final : public DeathWatch {
 public:
  explicit Checker(World& world) : world_(world) {}

  /// Of every change, in order.
  void OnChange(const kube::MemoryApiStore::Change& change);

  void OnCrash(const kube::Json& pod) override;
  void OnMayBeLost(const kube::Json& pod) override;
  void OnDismissed(const kube::Json& pod) override;

  /// How many there are in jobs.
  void SetServers(std::uint32_t data_servers, std::uint32_t parameter_servers) {
    settings_.data_servers = data_servers;
    settings_.parameter_servers = parameter_servers;
  }

  /// This pod is not of any job, and only the test deletes it.
  void AddStranger(const std::string& uid) { strangers_.insert(uid); }
  void RemoveStranger(const std::string& uid) { strangers_.erase(uid); }

  /// When all has come to rest: every loss that had to be judged was.
  void CheckLosses(const std::string& job_uid);

  /// A failure rule, or a bad configuration, may have failed the job.
  [[nodiscard]] bool MayFail(const std::string& job_uid) const;

  /// As it was stored last; absent: never, or it is deleted.
  [[nodiscard]] const controller::JobState* StateOf(const std::string& job_uid) const;

 private:
  struct Job {
    explicit Job(const controller::JobSettings& servers) : losses(servers) {}

    std::optional<controller::JobState> state;
    std::map<std::uint64_t, std::string> writers;  // by term
    std::map<std::string, kube::Json> results;     // stored EpochResults, by object
    std::string first_open;                        // entry of the first without result
    bool deleted = false;
    std::set<controller::StartProcess> pods;  // ever made
    LossBook losses;
    Clock::TimePoint ended{};  // when its phase became final
    bool suspended = false;    // at some time: counts began anew
  };

  Job& JobOf(const std::string& uid) { return jobs_.try_emplace(uid, settings_).first->second; }
  void OnNode(const kube::Json& node);
  void OnPodOfJob(const kube::PodView& view, const kube::MemoryApiStore::Change& change);

  void OnPod(const kube::MemoryApiStore::Change& change);
  void OnConfigMapGone(const kube::Json& object);
  void OnResults(const kube::Json& object);
  void OnState(const kube::Json& object);
  void OnShardMap(const kube::Json& before, const kube::Json& after);
  void CheckWriter(Job& job, std::uint64_t term, const kube::Json& object);
  void CheckState(Job& job, const controller::JobState& now);
  void Report(std::string what) { world_.violations.Report(std::move(what)); }

  World& world_;
  controller::JobSettings settings_;
  std::map<std::string, Job> jobs_;  // by UID
  std::set<std::string> strangers_;  // by UID of the pod

  // Nodes, and until when an operator may take them to be away.
  std::map<std::string, Clock::TimePoint> away_;
};

}  // namespace adamant::orchestration
