#include "tests/simulation/job/processes/controller_process.h"

#include <map>
#include <string>
#include <utility>

#include "services/common/base/check.h"

namespace adamant::simulation {
namespace {

LifePtr NewLife(std::uint64_t number) {
  auto life = std::make_shared<Life>();
  life->name = "controller#" + std::to_string(number);
  return life;
}

// What a controller that kept no incarnations would go on from.
std::string WithoutIncarnations(const std::string& stored) {
  auto state = controller::DecodeState(stored);
  ADAMANT_CHECK(state.ok(), "it was stored by a controller");
  for (controller::SlotRecord& slot : state->slots) {
    slot.incarnation = 0;
    slot.uid.clear();
  }
  return controller::Encode(*state);
}

}  // namespace

ControllerProcess::ControllerProcess(World& world, std::uint64_t number, Disk& disk, Body body)
    : Endpoint(NewLife(number)),
      world_(world),
      clock_(world.scheduler, world.setup.controller_drift),
      disk_(disk),
      body_(std::move(body)) {
  world_.network.Listen(kControllerAddress, *this);
  Restore();
  std::vector<controller::Action> actions = core_->Begin(clock_.Now(), {});
  if (core_->state().phase != controller::Phase::kSucceeded) {
    world_.job.Began(core_->state().term);
  }
  Perform(std::move(actions));
}

void ControllerProcess::Restore() {
  const auto stored = disk_.Get(controller::kStateKey);
  if (!stored.ok()) {
    core_ = controller::JobController::Create(world_.setup.job, 1 + world_.scheduler.rng()() / 2);
    return;
  }
  auto restored = controller::JobController::Restore(
      world_.setup.job,
      world_.Has(Mutation::kForgetsIncarnations) ? WithoutIncarnations(*stored) : *stored);
  ADAMANT_CHECK(restored.ok(), "a stored state can be read");
  core_ = *std::move(restored);
}

void ControllerProcess::Handle(const controller::Event& event) {
  Perform(core_->Handle(event, clock_.Now()));
}

void ControllerProcess::OnMessage(StreamId stream, StreamKind kind, Message& message) {
  if (kind == StreamKind::kExchange) {
    for (const auto& exporter : exporters_) {
      exporter->OnMessage(stream, message);
    }
  } else if (auto* member = std::get_if<controller::MemberMessage>(&message)) {
    Handle(controller::Received{.connection = stream, .message = std::move(*member)});
  }
}

void ControllerProcess::OnEnded(StreamId stream, StreamKind kind) {
  if (kind == StreamKind::kExchange) {
    for (const auto& exporter : exporters_) {
      exporter->OnEnded(stream);
    }
  } else {
    Handle(controller::Disconnected{stream});
  }
}

void ControllerProcess::Perform(std::vector<controller::Action> actions) {
  for (controller::Action& action : actions) {
    if (const auto* persist = std::get_if<controller::Persist>(&action)) {
      if (!Persist(*persist)) {
        break;
      }
    } else if (const auto* send = std::get_if<controller::Send>(&action)) {
      SendTo(*send);
    } else if (const auto* close = std::get_if<controller::CloseConnection>(&action)) {
      world_.network.Close(close->connection, *this);
    } else if (const auto* start = std::get_if<controller::StartProcess>(&action)) {
      body_.start(*start);
    } else if (const auto* kill = std::get_if<controller::KillProcess>(&action)) {
      body_.kill(*kill);
    } else if (const auto* wanted = std::get_if<controller::Export>(&action)) {
      Export(wanted->snapshot);
    } else if (const auto* done = std::get_if<controller::EpochDone>(&action)) {
      world_.job.EpochDone(done->result);
      world_.work.EpochDone(done->result);
    } else if (const auto* note = std::get_if<controller::Note>(&action)) {
      world_.scheduler.Record(life->name, note->text, note->epoch);
    } else if (std::holds_alternative<controller::Finished>(action)) {
      finished_ = true;
    }
  }
  world_.job.StateIs(core_->state());
  world_.updates.CheckCheckpoint(core_->state().job_uid, core_->state().checkpoint);
  TellWentBack();
  PlanTick();
}

void ControllerProcess::TellWentBack() {
  const controller::JobState& state = core_->state();
  if (!state.recovery.going_back) {
    return;
  }
  if (state.checkpoint.buckets.empty()) {
    world_.updates.MadeAnew(state.checkpoint.snapshot);
    world_.work.MadeAnew(state.checkpoint.snapshot);
  }
  bool news = false;
  const std::map<BucketId, std::uint64_t>& served = world_.updates.generations();
  for (BucketId bucket = 0; bucket < state.buckets.size(); ++bucket) {
    const controller::Configuration& record = state.buckets[bucket];
    // One that came back from this snapshot before the job went back has yet to do so again.
    const auto before = served.find(bucket);
    const bool is_before = before != served.end() && before->second >= record.generation;
    if (record.restored_snapshot == state.checkpoint.snapshot && !is_before &&
        world_.updates.WentBack(bucket, record.generation, record.restored_snapshot)) {
      news = true;
    }
  }
  if (news) {
    world_.work.WentBack(state.checkpoint.snapshot, state.epoch, state.recovery.attempt);
  }
}

bool ControllerProcess::Persist(const controller::Persist& persist) {
  std::vector<storage::Change> changes;
  for (const controller::Persist::Entry& entry : persist.entries) {
    changes.push_back({.key = entry.key, .value = entry.value});
  }
  const absl::Status status = disk_.Write(changes);
  if (status.ok() || controller::IsFinal(core_->state().phase)) {
    return true;
  }
  world_.scheduler.After(milliseconds(1), life, [this, status] {
    Handle(controller::ReconcilerFailed{std::string(status.message())});
  });
  return false;
}

void ControllerProcess::SendTo(const controller::Send& send) {
  const auto* flush = std::get_if<controller::FlushWorker>(&send.message);
  if (flush != nullptr && world_.Has(Mutation::kSnapshotUnflushed)) {
    world_.scheduler.After(
        milliseconds(1), life, [this, connection = send.connection, epoch = flush->epoch] {
          Handle(controller::Received{.connection = connection,
                                      .message = controller::WorkerFlushed{epoch}});
        });
    return;
  }
  world_.job.Sent(send.message);
  if (flush != nullptr) {
    world_.updates.FlushAsked();
  }
  if (const auto* take = std::get_if<controller::TakeSnapshot>(&send.message)) {
    world_.updates.SnapshotAsked(take->snapshot, take->writers_from, core_->state().buckets);
    world_.work.SnapshotAsked(take->snapshot);
  }
  world_.network.Send(send.connection, *this, send.message);
}

void ControllerProcess::Export(std::uint64_t snapshot) {
  std::vector<std::string> addresses;
  for (std::uint32_t slot = 0; slot < world_.setup.job.parameter_servers; ++slot) {
    addresses.push_back(core_->AddressOf({controller::Role::kParameterServer, slot}));
  }
  exporters_.push_back(std::make_unique<Exporter>(
      world_, *this, snapshot, [this, snapshot](const absl::Status& status) {
        world_.scheduler.After(milliseconds(5), life, [this, snapshot, status] {
          Handle(controller::Exported{.snapshot = snapshot, .status = status});
        });
      }));
  std::vector<std::uint32_t> primaries;
  for (const controller::Configuration& bucket : core_->state().buckets) {
    primaries.push_back(bucket.primary.slot);
  }
  exporters_.back()->Begin(addresses, primaries);
}

void ControllerProcess::PlanTick() {
  if (finished_) {
    return;
  }
  const Clock::TimePoint next = core_->NextTimer(clock_.Now());
  if (tick_at_.has_value() && *tick_at_ <= next) {
    return;
  }
  tick_at_ = next;
  world_.scheduler.At(clock_.ToWorld(next), life, [this, next] {
    if (tick_at_ == next) {
      tick_at_.reset();
      Handle(controller::Tick{});
    }
  });
}

}  // namespace adamant::simulation
