#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "services/common/base/ids.h"
#include "services/common/base/rng.h"
#include "tests/simulation/replication/processes/world.h"

namespace adamant::replication_simulation {

class Cluster;
class ServerProcess;

/// A history that chance hardly ever puts together: one of three copies logs a record that is never
/// committed, its place in the log goes to updates, which are not logged, and all copies are lost
/// when the record has been committed anew and not been stored yet. What comes back must be the
/// later one. Only where records alone are logged; drawn from the seed.
/// Threads: one.
class ForkedRecord {
 public:
  /// Both must outlive this.
  ForkedRecord(World& world, Cluster& cluster);

  /// Of every message that a server is about to send.
  void Sees(const ServerProcess& from, const ps::ServerId& to, const ps::PeerMessage& message);

  /// Nothing goes wrong any more.
  void Stop() { stage_ = Stage::kOver; }

 private:
  enum class Stage : std::uint8_t { kOver, kFirst, kOverwritten, kSecond, kCommitted };

  void OnPrepare(const ServerProcess& from, const ps::ServerId& to, const ps::PeerMessage& message);
  void Fork(const ServerProcess& primary,
            const ps::ServerId& successor,
            const ps::PeerMessage& message);
  void Cut(Place one, Place other, Clock::Duration time);
  void LoseAll();

  World& world_;
  Cluster& cluster_;
  Rng rng_;  // leaves the seed's other chances as they are
  Stage stage_ = Stage::kOver;
  int tries_ = 0;
  Clock::TimePoint until_{};  // then the try has failed
  BucketId bucket_ = 0;
  ConfigurationVersion configuration_version_ = 0;  // of the one who is replaced
  ps::Lsn lsn_ = 0;  // of the record that is awaited, or is to be overwritten
  ps::ServerId successor_;
};

}  // namespace adamant::replication_simulation
