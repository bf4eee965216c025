#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Processes that fill the job's slots: joining, incarnations, silence, restarts within the budget.
/// Threads: one thread at a time.
class ProcessTable {
 public:
  using TimePoint = Clock::TimePoint;

  /// A new member may load data for this time before it says anything more.
  static constexpr std::chrono::milliseconds kLoadTimeout{600'000};
  /// A worker that is not needed any more has this time to hand over what it did.
  static constexpr std::chrono::milliseconds kLeaveTimeout{10'000};
  /// A process that has run for so many times the wait before it ran well: its slot's backoff
  /// begins anew.
  static constexpr int kRanWell = 10;
  /// One that has run for so many times the first wait came up: the wait after it is at most a
  /// `kShareOfRun`-th of the time that it ran. So a slot whose processes come up, and are killed
  /// again and again, is without one at most a fifth of the time: else the few that are left where
  /// something kills them in turn are killed the more often, until all wait for a minute.
  static constexpr int kCameUp = 5;
  static constexpr int kShareOfRun = 4;
  /// The longest wait before a restart.
  static constexpr std::chrono::milliseconds kLongestBackoff{60'000};

  enum class Liveness : std::uint8_t {
    kAbsent,    ///< no process
    kStarting,  ///< asked for, has not joined
    kRunning,   ///< joined
    kWaiting,   ///< lost; will be started again at `deadline`, or when the last process has ended
  };

  struct Slot {
    SlotId id;
    Liveness liveness = Liveness::kAbsent;
    ConnectionId connection = 0;  ///< 0: none at the moment
    TimePoint deadline{};         ///< to join, to be heard, or of the restart; see Liveness
    bool started = false;         ///< kRunning: has said something since it joined, so it is ready
    bool exited = false;          ///< kAbsent, kWaiting: its last process has ended
    bool leaving = false;         ///< kRunning: was told to stop, as it is one too many
    bool has_run = false;         ///< some process of it has joined this controller
    TimePoint since{};            ///< kRunning: when it joined this controller
    std::optional<ProcessLoss>
        loss{};                ///< kWaiting: what to do about it is decided when it has ended
    std::string last_words{};  ///< why its last process cannot go on, where it has said so
    std::string loading{};     ///< kRunning and not started: what it does, where it has said so
    std::string address;
    std::string metrics_address;
    std::string replication_address;
    std::string node;
    std::string zone;
  };

  enum class Joined : std::uint8_t {
    kRefused,   ///< and told so
    kNew,       ///< a process new to this controller, or back at it
    kReplaced,  ///< like kNew, but another process held the slot until now: handle its loss first
  };

  /// `settings`, `state` and `outbox` must outlive this.
  ProcessTable(const JobSettings& settings, JobState& state, Outbox& outbox);

  /// Asks for a process in every slot of a role, but for those whose last process is among `known`:
  /// it is expected to join again, or its end to be reported.
  void StartRole(Role role, std::span<const StartProcess> known, TimePoint now);

  /// Judges those whom the last controller had taken for lost, as they were silent, and whose end
  /// it did not live to hear of; nobody will tell of that who is not among `known`. Before
  /// StartRole. Errors: as DecideRestart.
  absl::Status DecideGivenUp(std::span<const StartProcess> known);

  /// Judges a Join and binds the slot to the connection. Does not send Welcome.
  Joined OnJoin(ConnectionId connection, const Join& join, TimePoint now);

  /// The running slot bound to a connection; nullptr if there is none.
  Slot* Find(ConnectionId connection);

  /// Something was heard of this slot.
  void OnHeartbeat(Slot& slot, TimePoint now) const {
    slot.started = true;
    slot.loading.clear();
    if (!slot.leaving) {
      slot.deadline = now + settings_.silence_timeout;
    }
  }

  /// This slot is still loading its data, and may take its time.
  static void OnLoading(Slot& slot, std::string what, TimePoint now) {
    slot.loading = std::move(what);
    slot.deadline = now + kLoadTimeout;
  }

  /// The stream broke; the member may come back until it counts as silent.
  void OnDisconnected(ConnectionId connection);

  /// Frees the slot of a process that is lost; from now on counts the wait before the next one.
  /// DecideRestart says what follows.
  void MarkLost(Slot& slot, ProcessLoss loss, TimePoint now);

  /// The lost process has ended, or never was: plans its restart as failureRules want it.
  /// Errors: the job is to fail, saying what died and why that is the end: FailedPrecondition by a
  /// rule, for a bad configuration, or where its machine does not let it run; ResourceExhausted
  /// when the restart budget is spent.
  absl::Status DecideRestart(Slot& slot);

  /// Workers that the settings' number lacks get their slots, and those of lower ones that are free
  /// are to be filled; the first time by StartRole.
  void AddWorkers(TimePoint now);

  /// Workers beyond the settings' number are told to stop, or never start. Returns those that are
  /// gone already: nothing more is expected of them.
  std::vector<SlotId> DismissWorkers(TimePoint now);

  /// A dismissed worker has ended: frees its slot, which may be wanted again meanwhile.
  void OnLeft(Slot& slot, TimePoint now);

  /// Ends every process at no cost and leaves its slot to be started again, once all have ended:
  /// AllEnded, StartDue.
  void EndAll(TimePoint now);

  /// No process is left of those that EndAll has ended.
  [[nodiscard]] bool AllEnded() const;

  /// As EndAll, by a controller that begins; nobody waits for the end of those not among `known`.
  void EndKnown(std::span<const StartProcess> known, TimePoint now);

  /// Takes of the losses before what a process has made good that ran for so long.
  void Forgive(std::uint32_t& losses, Clock::Duration ran) const;
  /// Frees the slot for good: the job is ending.
  void Retire(Slot& slot);

  /// The process of this generation has ended. Returns the incarnation that it had joined as; 0:
  /// none, or it is not the slot's last process.
  std::uint64_t OnExited(Slot& slot, std::uint64_t generation);

  /// The next process of the slot begins on an empty volume.
  void TakeNewVolume(SlotId id);

  /// These processes cannot have joined yet: their time for it begins now.
  void OnWaiting(std::span<const StartProcess> processes, TimePoint now);

  /// A controller that was held up gives everybody time to be heard.
  void GrantTime(TimePoint now);

  /// Starts the processes whose backoff is over. Two processes of a slot never run at a time: the
  /// next starts when the last has ended.
  void StartDue(TimePoint now);

  /// The first slot whose process has neither joined in time nor been heard; nullptr if none.
  Slot* FindSilent(TimePoint now);

  /// Asks the reconciler to end the process of a slot.
  void Kill(const Slot& slot);

  /// Returns when StartDue or FindSilent must be asked again; nullopt: nothing is planned.
  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

  [[nodiscard]] bool IsRunning(SlotId id) const { return At(id).liveness == Liveness::kRunning; }
  [[nodiscard]] bool IsStarted(SlotId id) const { return IsRunning(id) && At(id).started; }
  [[nodiscard]] bool AllRunning(Role role) const;
  [[nodiscard]] bool AnyStarted(Role role) const;

  /// Its process has joined, this controller or an earlier one, and has not been given up.
  [[nodiscard]] bool MayPush(const Slot& slot) const;

  /// By worker slot: the lowest incarnation that MayPush is, or will be, said of.
  [[nodiscard]] std::vector<Incarnation> WritersFrom() const;

  [[nodiscard]] std::uint64_t IncarnationOf(SlotId id) const { return Record(id).incarnation; }
  [[nodiscard]] std::uint64_t GenerationOf(SlotId id) const { return Record(id).generation; }
  [[nodiscard]] std::uint64_t VolumeOf(SlotId id) const { return Record(id).volume; }

  /// Sends to one member, if it is connected; to all connected ones of a role.
  void SendTo(SlotId id, const ControllerMessage& message);
  void SendToAll(Role role, const ControllerMessage& message);

  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }

  /// The job has or had this slot.
  [[nodiscard]] bool Has(SlotId id) const {
    return id.role == Role::kWorker ? SlotIndex(settings_, id) < slots_.size() : !IsSurplus(id);
  }

  /// The job has fewer workers than this, though it may still run.
  [[nodiscard]] bool IsSurplus(SlotId id) const { return id.slot >= SlotCount(settings_, id.role); }
  [[nodiscard]] Slot& At(SlotId id) { return slots_[SlotIndex(settings_, id)]; }
  [[nodiscard]] const Slot& At(SlotId id) const { return slots_[SlotIndex(settings_, id)]; }

 private:
  [[nodiscard]] SlotRecord& Record(SlotId id) const {
    return state_.slots[SlotIndex(settings_, id)];
  }
  [[nodiscard]] std::string Objection(const Join& join) const;
  void Start(Slot& slot, TimePoint now);
  void Release(Slot& slot);
  void DecideRestart(SlotRecord& record);
  static void Recall(Slot& slot, TimePoint now);
  std::chrono::milliseconds NextDelay(Slot& slot, bool at_once);
  void Await(Slot& slot, TimePoint now);

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  std::vector<Slot> slots_;
};

/// The wait before the restart after `restarts` earlier ones: `first`, doubled each time, at most
/// ProcessTable::kLongestBackoff.
std::chrono::milliseconds RestartDelay(std::chrono::milliseconds first, std::uint32_t restarts);

}  // namespace adamant::controller
