#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "operator/core/state/state.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/clock.h"

namespace adamant::orchestration {

/// Keeps books of its own of how the processes of a job ended, as everybody can see who looks at
/// the API, and of what the job's failure rules say to that. Where two things happened to a
/// process, it depends on what the operator sees first, so there may be more than one verdict.
class LossBook {
 public:
  using TimePoint = Clock::TimePoint;

  /// `servers`: how many data and parameter servers jobs have.
  explicit LossBook(const controller::JobSettings& servers) : servers_(servers) {}

  /// The job's spec, as it is from now on.
  void OnSpec(const kube::Json& spec, TimePoint now);

  // --- What happens to a process

  void OnPod(const kube::PodView& view, bool node_away, TimePoint now);
  void OnPodGone(const controller::StartProcess& process, TimePoint now);
  void OnNodeAway(const std::string& node);
  void OnPaused(const controller::StartProcess& process);     ///< it may seem silent
  void OnDismissed(const controller::StartProcess& process);  ///< it ends because it was told to

  /// It has ended by itself, and nobody had asked for it: its loss must be judged.
  void OnCrash(const controller::StartProcess& process,
               const controller::JobState& state,
               TimePoint now);

  /// Compares what was judged from one stored state to the next with the rules; what is wrong, or
  /// "". `resumed`: counts begin anew.
  [[nodiscard]] std::string Check(const controller::JobState& before,
                                  const controller::JobState& now,
                                  bool resumed,
                                  TimePoint at) const;

  /// When all has come to rest: what should have been judged by the end of the job, and was not.
  [[nodiscard]] std::string CheckMissed(const controller::JobState& state, TimePoint ended) const;

  /// A rule, or a bad configuration, may have failed the job.
  [[nodiscard]] bool MayFail(TimePoint at) const;

 private:
  enum class Verdict : std::uint8_t { kRestart, kFail, kIgnore };

  struct Fate {
    TimePoint made{};
    std::string node;               // empty: none, or the pod is gone
    std::optional<TimePoint> sign;  // of its end
    std::optional<int> exit_code;   // it ended by itself
    bool disrupted = false;
    bool node_away = false;
    bool paused = false;
    bool dismissed = false;
    std::optional<TimePoint> crashed;
  };

  [[nodiscard]] Verdict Judge(const std::string& cause,
                              controller::Role role,
                              std::optional<int> exit_code) const;
  [[nodiscard]] std::set<Verdict> VerdictsOn(controller::Role role,
                                             const Fate& fate,
                                             TimePoint at) const;
  [[nodiscard]] bool MayBeSurplus(const controller::StartProcess& process, const Fate& fate) const;

  const controller::JobSettings& servers_;
  kube::Json rules_;
  std::optional<std::int64_t> workers_;
  std::map<std::int64_t, TimePoint> unwanted_;  // by slot: when a worker was last one too many
  std::map<controller::StartProcess, Fate> fates_;
};

}  // namespace adamant::orchestration
