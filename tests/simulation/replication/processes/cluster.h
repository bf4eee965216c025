#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "services/common/base/ids.h"
#include "tests/simulation/replication/processes/clerk.h"
#include "tests/simulation/replication/processes/controller_process.h"
#include "tests/simulation/replication/processes/foreman.h"
#include "tests/simulation/replication/processes/forked_record.h"
#include "tests/simulation/replication/processes/server_process.h"
#include "tests/simulation/replication/processes/world.h"
#include "tests/simulation/replication/processes/writer.h"
#include "tests/simulation/replication/world/disk.h"

namespace adamant::replication_simulation {

/// All processes of one simulation and the ways between them.
/// Threads: one.
class Cluster {
 public:
  explicit Cluster(World& world);

  // --- For processes

  /// A new stream to the controller; 0: there is no way to it now.
  std::uint64_t Connect(ControlledProcess& replica);
  void Disconnect(std::uint64_t connection);
  void TellController(std::uint64_t connection, controller::MemberMessage message);
  void SendToPeer(const ServerProcess& from, const ps::ServerId& to, ps::PeerMessage message);
  void SendPush(const Writer& writer, std::uint32_t target, const Push& push);
  void SendFetch(const Writer& writer, std::uint32_t target, const Fetch& fetch);
  void SendRecord(std::uint32_t target, const RecordRequest& request);
  void AnswerWriter(const ServerProcess& from, Place writer, PushAnswer answer);
  void AnswerClerk(const ServerProcess& from, std::uint32_t clerk, RecordAnswer answer);
  std::uint64_t NextRequest() { return ++requests_; }
  [[nodiscard]] std::uint32_t GuessPrimary(BucketId bucket);
  [[nodiscard]] Clock::TimePoint SafeBefore(BucketId bucket, std::uint32_t slot) const;

  /// The process ends now.
  void End(ServerProcess& server);

  // --- For the foreman

  [[nodiscard]] std::uint64_t attempt() const { return attempt_; }

  /// If it is another attempt of the job, all writers begin anew.
  void BeginAttempt(std::uint64_t attempt);
  void Pause(bool paused);
  [[nodiscard]] bool IsAtRest() const;
  void EndForeman();

  // --- For faults

  /// The process that runs in a slot; nullptr: none.
  [[nodiscard]] ServerProcess* Running(std::uint32_t slot) { return slots_[slot].process.get(); }

  /// The server that has this life; nullptr: none.
  [[nodiscard]] ServerProcess* Find(const LifePtr& life) const;

  /// No process starts there before this time.
  void KeepDown(std::uint32_t slot, Clock::Duration time);

  /// While it is unreachable nobody can end its process for the controller.
  void SetUnreachable(std::uint32_t slot, bool unreachable) {
    slots_[slot].unreachable = unreachable;
  }
  void LosePower();

  /// The volume of the slot is detached by force, and the next process of the slot has it. The one
  /// that runs there lives on: `out_of_reach`: of all others, not of the controller alone.
  void MoveVolume(std::uint32_t slot, bool out_of_reach, Clock::Duration time);

  /// A process has lost the volume of this slot, and the controller does not know yet that it has
  /// ended.
  [[nodiscard]] bool AwaitsProof(std::uint32_t slot) const;
  void CrashController(Clock::Duration away);

  /// No rare history begins, nor goes on, any more.
  void StopHistories() { forked_record_.Stop(); }

  /// A new one takes over; the old one does not know.
  void ReplaceController();
  void RestartWriter(std::uint32_t writer);
  [[nodiscard]] Disk& disk(std::uint32_t slot) { return *disks_[slot]; }
  [[nodiscard]] ControllerProcess* controller() { return controller_.get(); }

  // --- For checks

  /// What must hold at any time.
  void CheckStep();

  /// What must hold when all has been well for a while.
  void CheckRecovered();

  void StopWriters();

 private:
  struct Slot {
    std::unique_ptr<ServerProcess> process;
    std::uint64_t generation = 0;  // that the controller has asked for last
    bool starting = false;
    bool unreachable = false;
    Clock::TimePoint down_until{};
    std::uint64_t left = 0;  ///< the last incarnation that has lost the volume; 0: none
  };
  /// A process whose volume is attached elsewhere.
  struct Left {
    std::unique_ptr<ServerProcess> process;
    std::uint64_t generation = 0;
    std::map<BucketId, Clock::TimePoint> read_since;  ///< though another is read
  };
  /// A second copy of the beginning of a copy, which is still under way.
  struct LateBegin {
    ps::ServerId from;
    ps::PeerMessage message;
    Clock::TimePoint sent{};
  };
  struct Connection {
    Place slot = 0;
    ControlledProcess* replica = nullptr;
    ControllerProcess* controller = nullptr;
    bool doomed = false;
  };

  void StartController();
  controller::JobController::Survivors FindSurvivors();
  void Start(controller::SlotId id, std::uint64_t generation);
  void StartForeman(std::uint64_t generation);
  void TellExitOfForeman(std::uint64_t generation);
  void StartNow(std::uint32_t slot);
  void Kill(std::uint32_t slot, std::uint64_t generation);
  void TellExit(std::uint32_t slot);
  void LosePowerOf(std::uint32_t slot);
  void SendToMember(std::uint64_t connection, const controller::ControllerMessage& message);
  void Doom(std::uint64_t connection, Clock::Duration within);
  [[nodiscard]] ServerProcess* Find(const ps::ServerId& server_id) const;
  [[nodiscard]] ServerProcess* FindAny(const ps::ServerId& server_id) const;
  [[nodiscard]] ServerProcess* Reach(std::uint32_t slot);
  void EndLeft(ServerProcess& server);
  void DeliverLate(const ServerProcess& learner, const ps::PeerMessage& ack);
  void CheckLeft(BucketId bucket, bool read);
  void CheckRecovered(BucketId bucket);
  void TraceReads();

  World& world_;
  ForkedRecord forked_record_;
  std::vector<std::unique_ptr<Disk>> disks_;
  std::vector<Slot> slots_;
  std::vector<Left> left_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<std::uint64_t> writer_incarnations_;
  std::vector<std::unique_ptr<Clerk>> clerks_;
  ControllerStore store_;
  std::unique_ptr<ControllerProcess> controller_;
  std::unique_ptr<Foreman> foreman_;  // where only checkpoints are stored
  std::uint64_t attempt_ = 1;
  bool paused_ = false;  // writers and clerks
  std::map<std::uint64_t, Connection> connections_;
  std::map<ps::ServerId, Clock::TimePoint> deaths_;
  std::map<std::pair<BucketId, ps::ServerId>, LateBegin> late_begins_;  // by learner

  // What has ended; events that are still planned for it point there.
  std::vector<std::unique_ptr<ServerProcess>> dead_servers_;
  std::vector<std::unique_ptr<ControllerProcess>> old_controllers_;
  std::vector<std::unique_ptr<Writer>> old_writers_;
  std::vector<std::unique_ptr<Foreman>> old_foremen_;

  std::uint64_t starts_ = 0;
  std::uint64_t controllers_ = 0;
  std::uint64_t last_connection_ = 0;
  std::uint64_t requests_ = 0;
  std::vector<Clock::TimePoint> power_lost_at_;  // by slot
  Clock::TimePoint next_traced_read_{};
};

}  // namespace adamant::replication_simulation
