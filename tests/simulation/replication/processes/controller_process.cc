#include "tests/simulation/replication/processes/controller_process.h"

#include <utility>
#include <variant>

#include "services/common/base/check.h"

namespace adamant::replication_simulation {
namespace {

LifePtr NewLife(std::uint64_t number) {
  auto life = std::make_shared<Life>();
  life->name = "controller#" + std::to_string(number);
  return life;
}

controller::JobSettings SettingsOf(const Setup& setup) {
  controller::JobSettings settings;
  settings.name = "replication";
  settings.workers = setup.only_checkpoints() ? 1 : 0;
  settings.only_checkpoints = setup.only_checkpoints();
  settings.checkpoint_interval = setup.checkpoint_interval;
  settings.data_servers = 0;
  settings.parameter_servers = setup.servers;
  settings.buckets = setup.buckets;
  settings.copies = setup.copies;
  settings.min_in_sync = setup.min_in_sync;
  settings.logged = setup.logged();
  settings.restart_limit = 1'000'000;
  settings.training_examples = 1;  // known
  settings.restart_backoff = milliseconds(1);
  return settings;
}

}  // namespace

ControllerProcess::ControllerProcess(World& world,
                                     ControllerStore& store,
                                     std::uint64_t number,
                                     Body body)
    : life(NewLife(number)), world_(world), store_(store), body_(std::move(body)) {
  if (store_.state.empty()) {
    core_ = controller::JobController::Create(SettingsOf(world_.setup), 1);
    return;
  }
  auto restored = controller::JobController::Restore(SettingsOf(world_.setup), store_.state);
  ADAMANT_CHECK(restored.ok(), "a stored state can be read");
  core_ = *std::move(restored);
}

void ControllerProcess::Begin(const controller::JobController::Survivors& survivors) {
  Perform(core_->Begin(world_.scheduler.Now(), survivors));
}

void ControllerProcess::Handle(const controller::Event& event) {
  Perform(core_->Handle(event, world_.scheduler.Now()));
}

void ControllerProcess::OnMessage(std::uint64_t connection, controller::MemberMessage message) {
  Distort(message);
  Handle(controller::Received{.connection = connection, .message = std::move(message)});
}

void ControllerProcess::OnBroken(std::uint64_t connection) {
  Handle(controller::Disconnected{connection});
}

void ControllerProcess::OnExited(controller::SlotId id, std::uint64_t generation, bool proved) {
  Handle(controller::ProcessExited{
      .id = id, .generation = generation, .how = "has ended", .proved = proved});
}

// Faults on purpose.
void ControllerProcess::Distort(controller::MemberMessage& message) const {
  if (auto* proposals = std::get_if<controller::Proposals>(&message);
      proposals != nullptr && world_.Has(Mutation::kBlindWrites)) {
    for (controller::Proposal& proposal : proposals->proposals) {
      if (proposal.bucket < records().size()) {
        proposal.configuration_version = records()[proposal.bucket].version;
      }
    }
  }
  if (auto* stored = std::get_if<controller::StoredBuckets>(&message);
      stored != nullptr && world_.Has(Mutation::kStaleRestore)) {
    constexpr std::uint64_t kMany = 1'000'000'000;
    stored->previous_incarnation = 0;  // else that of a replica comes first
    for (controller::StoredBucket& bucket : stored->buckets) {
      bucket.generation = kMany - bucket.generation;
      bucket.updates = kMany - bucket.updates;
    }
  }
}

// Returns false if another controller has taken over.
bool ControllerProcess::Persist(const controller::Persist& persist) {
  if (term() < store_.term && !world_.Has(Mutation::kNoTerms)) {
    return false;
  }
  for (const controller::Persist::Entry& entry : persist.entries) {
    if (entry.key == controller::kStateKey) {
      store_ = {.term = term(), .state = entry.value};
    }
  }
  world_.checker.Stored(term(), records());
  if (world_.tracer != nullptr && !records().empty()) {
    world_.tracer->RecordIs(records()[0], core_->state().dead);
  }
  return true;
}

void ControllerProcess::Perform(std::vector<controller::Action> actions) {
  for (controller::Action& action : actions) {
    if (const auto* persist = std::get_if<controller::Persist>(&action)) {
      if (!Persist(*persist)) {
        world_.scheduler.Record(life->name, "is replaced");
        life->ended = true;
        return;
      }
    } else if (const auto* send = std::get_if<controller::Send>(&action)) {
      body_.send(send->connection, send->message);
    } else if (const auto* close = std::get_if<controller::CloseConnection>(&action)) {
      body_.close(close->connection);
    } else if (const auto* start = std::get_if<controller::StartProcess>(&action)) {
      body_.start(start->id, start->generation);
    } else if (const auto* kill = std::get_if<controller::KillProcess>(&action)) {
      body_.kill(kill->id, kill->generation);
    } else if (const auto* note = std::get_if<controller::Note>(&action)) {
      world_.scheduler.Record(life->name, note->text);
    }
  }
  if (controller::IsFinal(core_->state().phase)) {
    OnFailed();
  }
  PlanTick();
}

// It may when a bucket has lost all its replicas, and no disk can be relied on to have it.
void ControllerProcess::OnFailed() {
  bool may = false;
  for (BucketId bucket = 0; bucket < world_.setup.buckets; ++bucket) {
    may = may || world_.checker.MayBeLost(bucket);
  }
  if (may) {
    world_.over = true;
  } else {
    world_.violations.Report("the job failed: " + core_->state().message);
  }
}

void ControllerProcess::PlanTick() {
  const Clock::TimePoint next = core_->NextTimer(world_.scheduler.Now());
  if (tick_at_.has_value() && *tick_at_ <= next) {
    return;
  }
  tick_at_ = next;
  world_.scheduler.At(next, life, [this, next] {
    if (tick_at_ == next) {
      tick_at_.reset();
      Handle(controller::Tick{});
    }
  });
}

}  // namespace adamant::replication_simulation
