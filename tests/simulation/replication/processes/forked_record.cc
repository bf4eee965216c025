#include "tests/simulation/replication/processes/forked_record.h"

#include <utility>
#include <variant>

#include "tests/simulation/replication/processes/cluster.h"

namespace adamant::replication_simulation {
namespace {

constexpr std::uint64_t kForks = 7;  // of the random numbers of a seed
constexpr double kShare = 0.6;       // of the seeds that can show it
constexpr double kOfRecords = 0.1;   // of which one is taken
constexpr int kTries = 4;
constexpr auto kCalm = seconds(8);
constexpr auto kTimeout = seconds(12);
constexpr auto kToStore = milliseconds(40);  // what is sent and logged elsewhere
constexpr auto kToPromote = seconds(6);

ps::Lsn CommittedIn(const ps::PeerMessage& message) {
  if (const auto* prepare = std::get_if<ps::Prepare>(&message.kind)) {
    return prepare->committed;
  }
  const auto* beacon = std::get_if<ps::Beacon>(&message.kind);
  return beacon == nullptr ? 0 : beacon->committed;
}

}  // namespace

ForkedRecord::ForkedRecord(World& world, Cluster& cluster)
    : world_(world), cluster_(cluster), rng_(MixSeed(world.seed, kForks)) {
  if (world.tracer == nullptr && world.setup.mode == ps::PersistenceMode::kDelayed &&
      world.setup.copies == 3 && rng_.Uniform() < kShare) {
    stage_ = Stage::kFirst;
    tries_ = kTries;
    until_ = world.scheduler.Now() + kCalm;
  }
}

void ForkedRecord::Sees(const ServerProcess& from,
                        const ps::ServerId& to,
                        const ps::PeerMessage& message) {
  if (stage_ == Stage::kOver) {
    return;
  }
  if (stage_ != Stage::kFirst && world_.scheduler.Now() > until_) {
    stage_ = --tries_ > 0 ? Stage::kFirst : Stage::kOver;
  }
  if (std::holds_alternative<ps::Prepare>(message.kind)) {
    OnPrepare(from, to, message);
  }
  if (stage_ == Stage::kCommitted && message.bucket == bucket_ && from.server() == successor_ &&
      CommittedIn(message) >= lsn_) {
    LoseAll();
  }
}

void ForkedRecord::OnPrepare(const ServerProcess& from,
                             const ps::ServerId& to,
                             const ps::PeerMessage& message) {
  const ps::Entry& entry = *std::get<ps::Prepare>(message.kind).entry;
  if (stage_ == Stage::kFirst) {
    if (world_.scheduler.Now() > until_ && !entry.puts.empty() &&
        entry.origin == message.configuration_version && rng_.Uniform() < kOfRecords) {
      Fork(from, to, message);
    }
    return;
  }
  if (message.bucket != bucket_ || message.configuration_version <= configuration_version_) {
    return;
  }
  if (from.server() != successor_) {
    until_ = {};  // another has taken over
  } else if (stage_ == Stage::kOverwritten && entry.lsn == lsn_) {
    stage_ = Stage::kSecond;
    until_ = entry.puts.empty() ? until_ : Clock::TimePoint();
  } else if (stage_ == Stage::kSecond && entry.lsn > lsn_ && !entry.puts.empty()) {
    lsn_ = entry.lsn;
    stage_ = Stage::kCommitted;
  }
}

// The successor does not get this entry, and hears nothing more of its primary, which ends when the
// third one has it.
void ForkedRecord::Fork(const ServerProcess& primary,
                        const ps::ServerId& successor,
                        const ps::PeerMessage& message) {
  const auto& replicas = primary.bucket(message.bucket)->replica().configuration().replicas;
  ServerProcess* const running = cluster_.Running(primary.server().slot);
  if (replicas.size() != 3 || running != &primary) {
    return;
  }
  stage_ = Stage::kOverwritten;
  until_ = world_.scheduler.Now() + kTimeout;
  bucket_ = message.bucket;
  configuration_version_ = message.configuration_version;
  lsn_ = std::get<ps::Prepare>(message.kind).entry->lsn;
  successor_ = successor;
  world_.scheduler.Record("fault", "forks the log of bucket", bucket_, lsn_);
  for (const ps::ServerId& replica : replicas) {
    if (replica == successor) {
      Cut(primary.server().slot, successor.slot, seconds(1));
    } else if (replica != primary.server()) {
      Cut(replica.slot, world_.controller_place(), kToPromote);  // else it may be the successor
    }
  }
  world_.scheduler.After(kToStore, running->life, [this, running] {
    cluster_.KeepDown(running->server().slot, kTimeout);
    cluster_.End(*running);
  });
}

void ForkedRecord::Cut(Place one, Place other, Clock::Duration time) {
  world_.network.Cut(one, other);
  world_.network.Cut(other, one);
  world_.scheduler.After(time, nullptr, [this, one, other] {
    world_.network.Mend(one, other);
    world_.network.Mend(other, one);
  });
}

void ForkedRecord::LoseAll() {
  stage_ = Stage::kOver;
  world_.scheduler.After(Clock::Duration(0), nullptr, [this] {
    world_.scheduler.Record("fault", "kills all servers");
    for (std::uint32_t slot = 0; slot < world_.setup.servers; ++slot) {
      if (ServerProcess* const server = cluster_.Running(slot)) {
        cluster_.End(*server);
      }
    }
  });
}

}  // namespace adamant::replication_simulation
