#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "operator/core/state/messages.h"
#include "services/common/base/ids.h"
#include "services/common/storage/kv_store.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/replication/processes/world.h"

namespace adamant::replication_simulation {

class ServerProcess;

/// The faults on purpose that sit around one server: each changes what it is told, says or writes.
/// Without them nothing here has an effect.
/// Threads: one.
class Sabotage {
 public:
  Sabotage(World& world, ServerProcess& server) : world_(world), server_(server) {}

  // --- What it begins with, and is told

  void Distort(ps::ParameterServerOptions& options) const;
  void Distort(const controller::Membership& membership, std::vector<ps::ServerId>& dead);
  void Distort(BucketId id, ps::Configuration& configuration);
  void Distort(ps::ServerId& from, ps::PeerMessage& message);
  void Relabel(ps::Push& push);

  // --- What it says: answers to it come that nobody has given

  void Forge(const ps::ServerId& to, const ps::PeerMessage& message);
  void Proposed(const ps::Proposal& proposal);
  void CopyBegins(BucketId id, const ps::ServerId& learner, std::uint64_t copy);

  // --- What it writes

  void Distort(std::vector<storage::Change>& changes);

 private:
  void ReceiveSoon(const ps::ServerId& from, const ps::PeerMessage& message);
  void AddUncommitted(storage::Change& change) const;

  World& world_;
  ServerProcess& server_;
  std::vector<ps::ServerId> ever_dead_;
  std::map<BucketId, std::uint64_t> last_copy_;
  std::map<BucketId, ps::ServerId> proposed_learner_;
  std::map<std::tuple<BucketId, ps::ServerId, ConfigurationVersion>, ps::PrepareAck>
      earlier_acks_;  // of learners
  std::vector<storage::Change> late_;
  std::uint64_t relabelled_ = 0;
};

}  // namespace adamant::replication_simulation
