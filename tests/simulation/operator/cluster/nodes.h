#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/kube_client/base/json.h"
#include "operator/kube_client/cache/informer.h"
#include "tests/simulation/operator/cluster/network.h"
#include "tests/simulation/operator/cluster/process.h"

namespace adamant::orchestration {

/// What the checks want to know about how processes ended.
class DeathWatch {
 public:
  virtual ~DeathWatch() = default;

  /// A process has ended by itself, or was killed: its pod says so from now on.
  virtual void OnCrash(const kube::Json& pod) = 0;

  /// The controller may count this pod's process as lost, though it did not crash.
  virtual void OnMayBeLost(const kube::Json& pod) = 0;

  /// This pod's process ends because it was told to stop.
  virtual void OnDismissed(const kube::Json& pod) = 0;
};

/// The nodes of a cluster with their kubelets and a scheduler: pods get a node, their processes
/// start, end and are ended, and their objects say so after a while.
class Nodes {
 public:
  Nodes(World& world, Network& network, DeathWatch& deaths);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  /// From now on this long there is not always room for a pod at once.
  void SetCrowded(Clock::Duration time) { crowded_until_ = world_.scheduler.Now() + time; }

  /// How pods end that write a model: one that fails may say why.
  enum class Exports : std::uint8_t { kMostlyWork, kWork, kFail, kNeverStart };
  void SetExports(Exports exports) { exports_ = exports; }
  static constexpr char kWhyExportsFail[] = "adamant: cannot create /data/run: Permission denied";

  /// Takes in what has changed in the API.
  void OnApiChanged();

  // --- Faults; each does nothing where there is nothing that it could happen to

  void CrashProcess();
  void EvictPod();
  void DeletePod(bool at_once);
  void Pause(Clock::Duration time);     ///< a node with all its processes
  void CutPower(Clock::Duration time);  ///< the node comes back, its processes do not

  /// No process runs any more.
  [[nodiscard]] bool idle() const;

 private:
  static constexpr int kNodes = 3;

  struct Pod {
    kube::Json object = kube::Json::object();  // as it was last seen
    LifePtr node;                              // null: it has none yet
    std::unique_ptr<Process> process;
    int exit_code = -1;
    std::string last_words;
    bool ending = false;  // its process is being ended
    bool cut = false;     // its node has lost its power, and so its process
    bool evicted = false;
    bool gone = false;  // the object
  };
  using PodPtr = std::shared_ptr<Pod>;
  using Cache = kube::Informer<kube::Json>;

  void OnPod(const Cache::Change& change);
  [[nodiscard]] PodPtr Find(const std::string& uid) const;  // null: its object is gone
  void Bind(const std::string& uid);
  void Run(const std::string& uid);
  void StartProcess(const std::string& uid, Pod& pod);
  void OnExit(const std::string& uid, int code);
  void Terminate(const std::string& uid);
  void Forget(const std::string& uid);
  void RunExport(const std::string& uid, Pod& pod);
  void WriteStatus(const Pod& pod);
  LifePtr Lose(Clock::Duration time);
  void TellReady(const std::string& node, bool ready);
  [[nodiscard]] PodPtr PickRunning();

  World& world_;
  Network& network_;
  DeathWatch& deaths_;
  Cache cache_;
  std::uint64_t seen_ = 0;
  Clock::TimePoint crowded_until_{};
  Exports exports_ = Exports::kMostlyWork;
  std::vector<LifePtr> nodes_;
  std::map<std::string, PodPtr> pods_;                       // by UID
  std::map<std::string, std::shared_ptr<Volume>> volumes_;   // by UID of the claim
  std::map<std::string, std::shared_ptr<Servers>> servers_;  // by UID of the job
};

}  // namespace adamant::orchestration
