#include "tests/simulation/replication/processes/server_process.h"

#include <utility>
#include <variant>

#include "tests/simulation/replication/processes/cluster.h"
#include "tests/simulation/replication/world/inside.h"

// A server and its controller.
namespace adamant::replication_simulation {
namespace {

constexpr auto kHeartbeat = seconds(1);
constexpr auto kConnectAgain = milliseconds(300);
constexpr auto kJoinTimeout = seconds(2);

std::string NameOf(ps::Replica::Role role) {
  static constexpr const char* kNames[] = {"nothing",
                                           "learner",
                                           "secondary",
                                           "proposing",
                                           "loading",
                                           "reconciling",
                                           "serving",
                                           "draining"};
  return kNames[static_cast<std::size_t>(role)];
}

}  // namespace

ServerProcess::ServerProcess(World& world,
                             Cluster& cluster,
                             std::uint32_t slot,
                             std::uint64_t generation,
                             const std::string& uid,
                             Disk& disk)
    : ControlledProcess("server-" + std::to_string(slot)),
      world_(world),
      cluster_(cluster),
      slot_(slot),
      generation_(generation),
      uid_(uid),
      place_(slot),
      disk_(disk),
      volume_(disk, [this](std::vector<storage::Change>& changes) { OnWrite(changes); }),
      clock_(world.scheduler, world.setup.drift[slot]),
      server_{.slot = slot, .incarnation = 0},
      sabotage_(world, *this),
      roles_(world.setup.buckets, ps::Replica::Role::kNone) {
  world_.scheduler.After(
      world_.scheduler.Random(milliseconds(1), milliseconds(200)), life, [this] { Connect(); });
}

const ps::Bucket* ServerProcess::bucket(BucketId id) const {
  return open_ ? &BucketAt(*core_, id) : nullptr;
}

void ServerProcess::LoseVolume(Place place) {
  world_.scheduler.Record(life->name, "lives on without its volume");
  volume_.Detach();
  place_ = place;
}

bool ServerProcess::IsAloneWith(BucketId id) const {
  const ps::Bucket* const at = bucket(id);
  return at != nullptr && at->replica().configuration().replicas.size() == 1 &&
         !world_.setup.logged();
}

bool ServerProcess::Keeps(BucketId id) const {
  return has_volume() ||
         (!IsAloneWith(id) && world_.checker.IsCurrent(id, bucket(id)->content().generation));
}

bool ServerProcess::Serves(BucketId id) const {
  const ps::Bucket* const at = bucket(id);
  return at != nullptr && at->replica().role() >= ps::Replica::Role::kServing;
}

bool ServerProcess::CanRead(BucketId id) const {
  const ps::Bucket* const at = bucket(id);
  if (at == nullptr || at->content().shards.empty()) {
    return false;
  }
  const ps::Replica::Role role = at->replica().role();
  return at->replica().CanRead(clock_.Now()) ||
         (world_.Has(Mutation::kReadsWithoutLease) && role == ps::Replica::Role::kServing) ||
         (world_.Has(Mutation::kReadsBeforeReconciled) && role == ps::Replica::Role::kReconciling);
}

// --- The stream

void ServerProcess::Connect() {
  connection_ = cluster_.Connect(*this);
  welcome_ = false;
  if (connection_ == 0) {
    return world_.scheduler.After(kConnectAgain, life, [this] { Connect(); });
  }
  Tell(controller::Join{.id = {controller::Role::kParameterServer, slot_},
                        .uid = uid_,
                        .incarnation = server_.incarnation,
                        .generation = generation_});
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
  } else if (const auto* take = std::get_if<controller::TakeSnapshot>(&message)) {
    snapshots_.push_back(*take);
    WantStorage();
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
  if (server_.incarnation == 0) {
    server_.incarnation = welcome.incarnation;
    attempt_ = welcome.attempt;
    life->name += "#" + std::to_string(welcome.incarnation);
    const auto reading = world_.scheduler.Random(milliseconds(1), milliseconds(300));
    return world_.scheduler.After(reading, life, [this] { OpenDisk(); });
  }
  if (open_) {
    ReportStored();
    for (const ps::BucketReport& report : core_->Reports()) {
      Report(report);
    }
  }
}

void ServerProcess::OnMembership(const controller::Membership& membership) {
  if (membership_.has_value() && membership.version < membership_->version) {
    return;
  }
  membership_ = membership;
  if (!open_) {
    return;
  }
  std::vector<ps::Configuration> configurations = membership.buckets;
  std::vector<ps::ServerId> dead = membership.dead;
  sabotage_.Distort(membership, dead);
  for (BucketId id = 0; id < configurations.size(); ++id) {
    if (world_.tracer != nullptr) {
      world_.tracer->Adopts(slot_, configurations[id]);
    }
    sabotage_.Distort(id, configurations[id]);
  }
  core_->SetConfigurations(configurations, dead);
  Settle();
}

void ServerProcess::Heartbeat() {
  controller::ParameterServerProgress progress;
  for (const ps::BucketProgress& bucket : core_->Progress()) {
    progress.buckets.push_back(bucket);
  }
  if (welcome_) {
    Tell(controller::Heartbeat{.progress = progress});
  }
  world_.scheduler.After(kHeartbeat, life, [this] { Heartbeat(); });
}

void ServerProcess::Drain() { Tell(controller::Draining{}); }

// --- What the core asks of the controller, and what it has done

void ServerProcess::Propose(const ps::Proposal& proposal) {
  controller::Proposal sent = proposal;
  sent.released = proposal.released && !world_.Has(Mutation::kReleasedWhileServing);
  Tell(controller::Proposals{.proposals = {sent}});
}

void ServerProcess::Report(const ps::BucketReport& report) { Tell(ps::ReadyOf({report})); }

void ServerProcess::Settle() {
  for (BucketId id = 0; id < world_.setup.buckets; ++id) {
    const ps::Replica& replica = bucket(id)->replica();
    if (replica.role() != std::exchange(roles_[id], replica.role())) {
      world_.scheduler.Record(life->name,
                              NameOf(replica.role()) + " of bucket " + std::to_string(id),
                              replica.configuration().version,
                              replica.log().prepared());
    }
    world_.checker.Watch(id, server_, replica);
    tap_->TraceAppended(id);
  }
}

}  // namespace adamant::replication_simulation
