#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/messages.h"
#include "tests/simulation/replication/hosted_bucket.h"

namespace adamant::replication_simulation {

class Cluster;

/// One process of a parameter server: joins, reports its disk, hosts its buckets.
/// Threads: one.
class ServerProcess final : public BucketOwner {
 public:
  ServerProcess(
      World& world, Cluster& cluster, std::uint32_t slot, const std::string& uid, Disk& disk);

  const LifePtr life;

  /// Incarnation 0 until it has joined.
  [[nodiscard]] const ps::Holder& holder() const { return holder_; }
  [[nodiscard]] HostedBucket* bucket(std::uint32_t id) {
    return buckets_.empty() ? nullptr : buckets_[id].get();
  }

  // --- The controller's stream

  void OnControllerMessage(std::uint64_t connection, const controller::ControllerMessage& message);
  void OnBroken(std::uint64_t connection);

  /// It is about to stop.
  void Drain();

  // --- Peers and writers

  void OnPeerMessage(const ps::Holder& from, const ps::PeerMessage& message);
  void OnOpened(const ps::Holder& peer);
  void OnPush(Place writer, const Push& push);

  // --- BucketOwner

  void SendToPeer(const ps::Holder& to, ps::PeerMessage message) override;
  void SendProposal(const ps::Proposal& proposal) override;
  void Answer(Place writer, PushAnswer answer) override;
  void ReportServing(std::uint32_t bucket, bool lost) override;
  Clock::TimePoint SafeBefore(std::uint32_t bucket) override;

 private:
  [[nodiscard]] Clock::TimePoint Now() const;
  [[nodiscard]] Clock::TimePoint ToWorld(Clock::TimePoint local) const;

  void Connect();
  void OnWelcome(const controller::Welcome& welcome);
  void OnMembership(const controller::Membership& membership);
  [[nodiscard]] std::vector<ps::Holder> DeadOf(const controller::Membership& membership);
  void ReportStored();
  void Tell(controller::MemberMessage message);
  void Heartbeat();
  void FlushAll();
  void PlanTick();

  World& world_;
  Cluster& cluster_;
  const std::uint32_t slot_;
  const std::string uid_;
  Disk& disk_;
  ps::Holder holder_;
  std::vector<std::unique_ptr<HostedBucket>> buckets_;

  std::uint64_t connection_ = 0;
  bool welcome_ = false;
  std::uint64_t term_ = 0;
  controller::StoredBuckets stored_;
  bool reported_ = false;
  std::optional<controller::Membership> membership_;
  std::vector<ps::Holder> ever_dead_;
  std::optional<Clock::TimePoint> tick_at_;  // by the world's clock
};

}  // namespace adamant::replication_simulation
