#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/job/processes/loss_window.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// What the checkers are shown of the buckets of one parameter server: what it begins to serve
/// with, and what its disk may lack when it ends.
/// Threads: one.
class BucketObserver {
 public:
  /// `owner` is the server. Both must outlive this.
  BucketObserver(World& world, MemberProcess& owner)
      : world_(world), owner_(owner), window_(world.setup, owner.clock()) {}

  /// The server cannot write for this long, whether it has started or not.
  void Hinder(Clock::Duration time) { window_.Hinder(time); }

  /// The server has started; before all that follows. `core` must outlive this.
  void Start(parameter_server::ParameterServer& core) { core_ = &core; }

  /// The controller tells of these, by bucket.
  void SetConfigurations(std::span<const parameter_server::Configuration> buckets);

  /// Before the core hears of a message from another server.
  void OnPeerMessage(const parameter_server::PeerMessage& message);

  /// Of those it serves itself; with every tick.
  void HearServed();

  /// Shows what the server begins to serve with, when that came from a disk; whenever its core has
  /// done something.
  void Observe();
  [[nodiscard]] bool HasObserved() const { return !observed_.empty(); }

  /// The process has ended.
  void OnEnded();

  /// The server does nothing for buckets that it is primary of, as it has ended or is paused.
  void OrphanBuckets();

 private:
  [[nodiscard]] bool IsKnown(BucketId bucket) const;
  [[nodiscard]] std::vector<ShardId> ShardsOf(BucketId bucket) const;
  void PushAgain();

  World& world_;
  MemberProcess& owner_;
  parameter_server::ParameterServer* core_ = nullptr;
  LossWindow window_;
  std::map<BucketId, ConfigurationVersion> versions_;  // as the controller told them last
  std::map<BucketId, std::uint64_t> observed_;         // generations that were seen
};

}  // namespace adamant::simulation
