#include "tests/simulation/replication/server_process.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <variant>

#include "tests/simulation/replication/cluster.h"
#include "tests/simulation/replication/convert.h"

namespace adamant::replication_simulation {
namespace {

constexpr auto kHeartbeat = seconds(1);
constexpr auto kConnectAgain = milliseconds(300);
constexpr auto kJoinTimeout = seconds(2);

LifePtr NewLife(std::uint32_t slot) {
  auto life = std::make_shared<Life>();
  life->name = "server-" + std::to_string(slot);
  return life;
}

}  // namespace

ServerProcess::ServerProcess(
    World& world, Cluster& cluster, std::uint32_t slot, const std::string& uid, Disk& disk)
    : life(NewLife(slot)),
      world_(world),
      cluster_(cluster),
      slot_(slot),
      uid_(uid),
      disk_(disk),
      holder_{.slot = slot, .incarnation = 0} {
  world_.scheduler.After(
      world_.scheduler.Random(milliseconds(1), milliseconds(200)), life, [this] { Connect(); });
}

// --- Time

Clock::TimePoint ServerProcess::Now() const {
  const auto passed = static_cast<double>(world_.scheduler.Now().time_since_epoch().count());
  const double ahead = passed * static_cast<double>(world_.setup.drift[slot_]) * 1e-9;
  return world_.scheduler.Now() + std::chrono::nanoseconds(std::llround(ahead));
}

// Not before `local`, but soon after.
Clock::TimePoint ServerProcess::ToWorld(Clock::TimePoint local) const {
  const double left = std::chrono::duration<double>(local - Now()).count();
  const double rate = 1 + static_cast<double>(world_.setup.drift[slot_]) * 1e-9;
  return world_.scheduler.Now() +
         std::chrono::duration_cast<Clock::Duration>(
             std::chrono::duration<double>(std::max(left, 0.0) / rate)) +
         milliseconds(2);
}

void ServerProcess::PlanTick() {
  Clock::TimePoint next = Clock::TimePoint::max();
  for (const auto& bucket : buckets_) {
    next = std::min(next, bucket->NextTick());
  }
  if (next == Clock::TimePoint::max()) {
    return;
  }
  const Clock::TimePoint at = ToWorld(next);
  if (tick_at_.has_value() && *tick_at_ <= at) {
    return;
  }
  tick_at_ = at;
  world_.scheduler.At(at, life, [this, at] {
    if (tick_at_ == at) {
      tick_at_.reset();
      for (const auto& bucket : buckets_) {
        bucket->Tick();
      }
      PlanTick();
    }
  });
}

// --- The controller

void ServerProcess::Connect() {
  connection_ = cluster_.Connect(*this);
  welcome_ = false;
  if (connection_ == 0) {
    return world_.scheduler.After(kConnectAgain, life, [this] { Connect(); });
  }
  Tell(controller::Join{.id = {controller::Role::kParameterServer, slot_},
                        .uid = uid_,
                        .incarnation = holder_.incarnation});
  world_.scheduler.After(kJoinTimeout, life, [this, connection = connection_] {
    if (connection == connection_ && !welcome_) {
      cluster_.Disconnect(connection);
    }
  });
}

void ServerProcess::OnBroken(std::uint64_t connection) {
  if (connection == connection_) {
    connection_ = 0;
    world_.scheduler.After(kConnectAgain, life, [this] { Connect(); });
  }
}

void ServerProcess::Tell(controller::MemberMessage message) {
  if (connection_ != 0) {
    cluster_.TellController(connection_, std::move(message));
  }
}

void ServerProcess::OnControllerMessage(std::uint64_t connection,
                                        const controller::ControllerMessage& message) {
  if (connection != connection_) {
    return;
  }
  if (const auto* welcome = std::get_if<controller::Welcome>(&message)) {
    OnWelcome(*welcome);
  } else if (const auto* membership = std::get_if<controller::Membership>(&message)) {
    OnMembership(*membership);
  } else if (std::holds_alternative<controller::Refused>(message)) {
    world_.scheduler.Record(life->name, "is refused");
    cluster_.End(*this);
  }
}

void ServerProcess::OnWelcome(const controller::Welcome& welcome) {
  if (welcome.term < term_) {
    return cluster_.Disconnect(connection_);
  }
  term_ = welcome.term;
  welcome_ = true;
  if (holder_.incarnation != 0) {
    return ReportStored();
  }
  holder_.incarnation = welcome.incarnation;
  life->name += "#" + std::to_string(welcome.incarnation);
  const auto reading = world_.scheduler.Random(milliseconds(1), milliseconds(300));
  world_.scheduler.After(reading, life, [this] {
    stored_ = cluster_.ReadDisk(holder_);
    for (std::uint32_t bucket = 0; bucket < world_.setup.buckets; ++bucket) {
      buckets_.push_back(std::make_unique<HostedBucket>(
          world_,
          HostedBucket::Place{
              .bucket = bucket, .holder = holder_, .life = life, .now = [this] { return Now(); }},
          disk_,
          *this));
    }
    reported_ = true;
    ReportStored();
    Heartbeat();
    FlushAll();
    if (membership_.has_value()) {
      OnMembership(*std::exchange(membership_, std::nullopt));
    }
  });
}

// What it has held since is not as it was.
void ServerProcess::ReportStored() {
  if (!reported_) {
    return;
  }
  controller::StoredBuckets report{.previous_incarnation = stored_.previous_incarnation,
                                   .buckets = {}};
  for (const controller::StoredBucket& each : stored_.buckets) {
    if (!buckets_[each.bucket]->touched()) {
      report.buckets.push_back(each);
    }
  }
  Tell(report);
}

void ServerProcess::OnMembership(const controller::Membership& membership) {
  if (membership_.has_value() && membership.version < membership_->version) {
    return;
  }
  membership_ = membership;
  if (!reported_) {
    return;
  }
  const std::vector<ps::Holder> dead = DeadOf(membership);
  for (std::uint32_t bucket = 0; bucket < membership.buckets.size(); ++bucket) {
    buckets_[bucket]->OnConfiguration(FromController(membership.buckets[bucket]));
    buckets_[bucket]->OnDead(dead);
  }
  PlanTick();
}

std::vector<ps::Holder> ServerProcess::DeadOf(const controller::Membership& membership) {
  std::vector<ps::Holder> dead;
  for (const controller::Holder& each : membership.dead) {
    dead.push_back(FromController(each));
  }
  for (const controller::Bucket& record : membership.buckets) {
    for (const controller::Holder& holder : record.members) {
      const bool running = std::ranges::any_of(membership.members, [&](const auto& member) {
        return member.id.slot == holder.slot && member.incarnation == holder.incarnation;
      });
      const bool same_slot_died = std::ranges::any_of(
          ever_dead_, [&](const ps::Holder& each) { return each.slot == holder.slot; });
      if ((world_.Has(Mutation::kReleaseOnSuspicion) && !running) ||
          (world_.Has(Mutation::kProofBySlot) && same_slot_died)) {
        dead.push_back(FromController(holder));
      }
    }
  }
  for (const controller::Holder& each : membership.dead) {
    ever_dead_.push_back(FromController(each));
  }
  return dead;
}

void ServerProcess::Heartbeat() {
  controller::ParameterServerProgress progress;
  for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
    const ps::Replica& replica = buckets_[id]->replica();
    if (replica.IsPrimary()) {
      progress.buckets.push_back({.bucket = id,
                                  .epoch = replica.configuration().epoch,
                                  .committed = replica.committed(),
                                  .serving = replica.role() == ps::Replica::Role::kServing});
    }
  }
  if (welcome_) {
    Tell(controller::Heartbeat{.progress = progress});
  }
  world_.scheduler.After(kHeartbeat, life, [this] { Heartbeat(); });
}

void ServerProcess::Drain() { Tell(controller::Draining{}); }

void ServerProcess::ReportServing(std::uint32_t bucket, bool lost) {
  Tell(controller::BucketsReady{
      .buckets = {{.bucket = bucket,
                   .epoch = buckets_[bucket]->replica().configuration().epoch,
                   .lost = lost,
                   .detail = lost ? "incomplete" : ""}}});
}

void ServerProcess::SendProposal(const ps::Proposal& proposal) {
  Tell(controller::Proposals{.proposals = {ToController(proposal)}});
}

Clock::TimePoint ServerProcess::SafeBefore(std::uint32_t bucket) {
  return cluster_.SafeBefore(bucket);
}

// --- Peers and writers

void ServerProcess::OnPeerMessage(const ps::Holder& from, const ps::PeerMessage& message) {
  if (!buckets_.empty()) {
    buckets_[message.bucket]->OnPeerMessage(from, message);
    PlanTick();
  }
}

void ServerProcess::OnOpened(const ps::Holder& peer) {
  for (const auto& bucket : buckets_) {
    bucket->OnOpened(peer);
  }
  PlanTick();
}

void ServerProcess::OnPush(Place writer, const Push& push) {
  if (!buckets_.empty()) {
    buckets_[push.bucket]->OnPush(writer, push);
    PlanTick();
  }
}

void ServerProcess::SendToPeer(const ps::Holder& to, ps::PeerMessage message) {
  cluster_.SendToPeer(holder_, to, std::move(message));
}

void ServerProcess::Answer(Place writer, PushAnswer answer) {
  cluster_.AnswerWriter(slot_, writer, std::move(answer));
}

void ServerProcess::FlushAll() {
  for (const auto& bucket : buckets_) {
    bucket->Flush();
  }
  const Clock::TimePoint next = ToWorld(Now() + world_.setup.flush_interval);
  world_.scheduler.At(next, life, [this] { FlushAll(); });
}

}  // namespace adamant::replication_simulation
