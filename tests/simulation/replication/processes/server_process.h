#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/state/messages.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/engine/local_clock.h"
#include "tests/simulation/replication/processes/foreman.h"
#include "tests/simulation/replication/processes/sabotage.h"
#include "tests/simulation/replication/processes/tap.h"
#include "tests/simulation/replication/processes/world.h"
#include "tests/simulation/replication/world/disk.h"
#include "tests/simulation/replication/world/traffic.h"

namespace adamant::replication_simulation {

class Cluster;

/// One process of a parameter server around its real core. Mirrors services/parameter_server/rpc:
/// joins, reports its disk, and lets nobody in before that; what waits for the disk is done a
/// moment later, and so is applying what others' messages have committed.
/// Threads: one.
class ServerProcess final : public ControlledProcess, private ps::Driver {
 public:
  ServerProcess(World& world,
                Cluster& cluster,
                std::uint32_t slot,
                std::uint64_t generation,
                const std::string& uid,
                Disk& disk);

  /// Where it runs: its slot, unless its volume is attached elsewhere.
  [[nodiscard]] Place place() const override { return place_; }

  /// Its volume is attached elsewhere, while it lives on at this place.
  void LoseVolume(Place place);
  [[nodiscard]] bool has_volume() const { return place_ == slot_; }

  /// It alone has what it acknowledges of the bucket, in memory.
  [[nodiscard]] bool IsAloneWith(BucketId id) const;

  /// What it acknowledges is kept. Not so without its volume where it is alone, nor when the
  /// bucket has come back elsewhere: that is lost with what it had in memory.
  [[nodiscard]] bool Keeps(BucketId id) const;

  /// Incarnation 0 until it has joined.
  [[nodiscard]] const ps::ServerId& server() const { return server_; }

  /// nullptr: it has not read its disk yet.
  [[nodiscard]] const ps::Bucket* bucket(BucketId id) const;

  /// It is a primary that serves.
  [[nodiscard]] bool Serves(BucketId id) const;

  /// Whether it may be read now.
  [[nodiscard]] bool CanRead(BucketId id) const;

  /// Its core; it must have read its disk.
  [[nodiscard]] ps::ParameterServer& core() { return *core_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  // --- The controller's stream (server_process.cc)

  void OnControllerMessage(std::uint64_t connection,
                           const controller::ControllerMessage& message) override;
  void OnBroken(std::uint64_t connection) override;

  /// It is about to stop.
  void Drain();

  // --- Peers and writers (server_traffic.cc)

  void OnPeerMessage(ps::ServerId from, ps::PeerMessage message);

  /// That was what its primary, which served, had to say at `said`.
  void HasHeard(const ps::ServerId& from, const ps::PeerMessage& message, Clock::TimePoint said);
  void OnOpened(const ps::ServerId& peer);
  void OnPush(Place writer, const Push& push);
  void OnFetch(const Fetch& fetch);
  void OnPlacement(const RecordRequest& request);
  void Stored(const RecordRequest& put);

  /// As it is, whatever faults on purpose make of others.
  void Receive(const ps::ServerId& from, const ps::PeerMessage& message);

  // --- Driver

  void SendToPeer(const ps::ServerId& to, ps::PeerMessage message) override;

 private:
  // What the core asks for.
  void Propose(const ps::Proposal& proposal) override;
  void Report(const ps::BucketReport& report) override;
  void WantApply() override;
  void WantStorage() override;

  void Connect();
  void OnWelcome(const controller::Welcome& welcome);
  void OnMembership(const controller::Membership& membership);
  void Tell(controller::MemberMessage message);
  void Heartbeat();
  void Tick();
  void Settle();

  void OnPushed(Place writer, const Push& push, const std::vector<ps::ShardAck>& acks);

  // The disk (server_storage.cc).
  void OpenDisk();
  void ReadDisk();
  void ReportStored();
  void OnWrite(std::vector<storage::Change>& changes);
  void PlanStorage(Clock::TimePoint time);
  void DoStorage();
  absl::Status DoDue();
  absl::Status TakeSnapshot(const controller::TakeSnapshot& take);

  World& world_;
  Cluster& cluster_;
  const std::uint32_t slot_;
  const std::uint64_t generation_;
  const std::string uid_;
  Place place_;
  Disk& disk_;
  Volume volume_;
  const simulation::LocalClock clock_;
  ps::ServerId server_;
  std::optional<ps::ParameterServer> core_;
  Sabotage sabotage_;
  std::optional<Tap> tap_;
  bool open_ = false;  // it has read its disk

  std::uint64_t connection_ = 0;
  bool welcome_ = false;
  std::uint64_t term_ = 0;
  std::uint64_t attempt_ = 1;
  std::vector<controller::TakeSnapshot> snapshots_;  // that are asked for
  std::optional<controller::Membership> membership_;
  std::vector<ps::Replica::Role> roles_;  // when they were looked at last
  bool apply_planned_ = false;
  std::optional<Clock::TimePoint> storage_at_;  // by the world's clock
};

}  // namespace adamant::replication_simulation
