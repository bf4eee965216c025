#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Holds the job's slots with the processes that fill them: who is where, what is known of it, and
/// how it is reached. Who joins, starts, is lost or dismissed, others in this folder decide.
/// Threads: one thread at a time.
class ProcessTable {
 public:
  using TimePoint = Clock::TimePoint;

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
    bool load_fails = false;   ///< with `loading`: it comes no further, which was told
    std::string address;
    std::string metrics_address;
    std::string replication_address;
    std::uint64_t generation = 0;  ///< kRunning: that it was started as
    std::string node;
    std::string zone;

    /// It has a process, with a deadline: to join, or to be heard.
    [[nodiscard]] bool has_process() const {
      return liveness == Liveness::kStarting || liveness == Liveness::kRunning;
    }

    /// A process is wanted from `time` on, once the last one has ended.
    void WaitUntil(TimePoint time) {
      liveness = Liveness::kWaiting;
      deadline = time;
    }
  };

  /// `settings`, `state` and `outbox` must outlive this.
  ProcessTable(const JobSettings& settings, JobState& state, Outbox& outbox);

  /// The running slot bound to a connection; nullptr if there is none.
  Slot* Find(ConnectionId connection);

  /// The stream broke; the member may come back until it counts as silent.
  void OnDisconnected(ConnectionId connection);

  /// Frees the slot for good: the job is ending, or its process is lost.
  void Retire(Slot& slot);

  /// Frees the slot of a process whose end costs nothing. Where the job still has the slot, another
  /// one is wanted at once.
  void Vacate(Slot& slot, TimePoint now);

  /// The end of the slot's last process is judged, or is nothing to be judged, by any controller.
  void Conclude(SlotId id);

  /// Adds the next worker's slot, and its record. Invalidates references to slots.
  void AddSlot();

  /// The process of this generation has ended. Returns the incarnation that it had joined as; 0:
  /// none, or it is not the slot's last process.
  std::uint64_t OnExited(Slot& slot, std::uint64_t generation);

  /// The next process of the slot begins on an empty volume.
  void TakeNewVolume(SlotId id);

  /// Asks the reconciler to end the process of a slot.
  void Kill(const Slot& slot);

  [[nodiscard]] bool IsRunning(SlotId id) const { return At(id).liveness == Liveness::kRunning; }
  [[nodiscard]] bool IsStarted(SlotId id) const { return IsRunning(id) && At(id).started; }
  [[nodiscard]] bool AnyStarted(Role role) const;

  /// Its process has joined, this controller or an earlier one, and has not been given up.
  [[nodiscard]] bool MayPush(const Slot& slot) const;

  /// The last processes of slots that are to get another one as soon as these have ended.
  [[nodiscard]] std::vector<StartProcess> AwaitedEnds() const;

  /// By worker slot: the lowest incarnation that MayPush is, or will be, said of.
  [[nodiscard]] std::vector<Incarnation> WritersFrom() const;

  [[nodiscard]] std::uint64_t IncarnationOf(SlotId id) const { return Record(id).incarnation; }
  [[nodiscard]] std::uint64_t GenerationOf(SlotId id) const { return Record(id).generation; }

  /// Returns which of its volumes a parameter server's process is to use, counted from 1. It rises
  /// when a node is lost with a volume that others have copies of, and when the volume was deleted.
  [[nodiscard]] std::uint64_t VolumeOf(SlotId id) const { return Record(id).volume; }

  /// Sends to one member, if it is connected; to all connected ones of a role.
  void SendTo(SlotId id, const ControllerMessage& message);
  void SendToAll(Role role, const ControllerMessage& message);

  /// Calls `visit` for each slot of a role whose process runs, in the order of the slots.
  void ForEachRunning(Role role, const std::function<void(SlotId id)>& visit) const;

  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }
  [[nodiscard]] std::span<Slot> slots() { return slots_; }

  /// The job has or had this slot.
  [[nodiscard]] bool Has(SlotId id) const {
    return id.role == Role::kWorker ? SlotIndex(settings_, id) < slots_.size() : !IsSurplus(id);
  }

  /// The job has fewer workers than this, though it may still run.
  [[nodiscard]] bool IsSurplus(SlotId id) const { return id.slot >= SlotCount(settings_, id.role); }
  [[nodiscard]] Slot& At(SlotId id) { return slots_[SlotIndex(settings_, id)]; }
  [[nodiscard]] const Slot& At(SlotId id) const { return slots_[SlotIndex(settings_, id)]; }

  /// Facts that the state remembers of a slot. Who changes them says so to the outbox.
  [[nodiscard]] SlotRecord& Record(SlotId id) { return state_.slots[SlotIndex(settings_, id)]; }
  [[nodiscard]] const SlotRecord& Record(SlotId id) const {
    return state_.slots[SlotIndex(settings_, id)];
  }

 private:
  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  std::vector<Slot> slots_;
};

}  // namespace adamant::controller
