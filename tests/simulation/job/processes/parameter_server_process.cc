#include "tests/simulation/job/processes/parameter_server_process.h"

#include <algorithm>
#include <utility>

namespace adamant::simulation {

ParameterServerProcess::ParameterServerProcess(World& world,
                                               const ProcessStart& start,
                                               std::function<void(std::string)> exited,
                                               Disk& disk)
    : MemberProcess(world, start, std::move(exited)), disk_(disk), buckets_(world, *this) {}

absl::Status ParameterServerProcess::Start(const controller::Welcome& welcome) {
  if (std::exchange(disk_.locked, true)) {
    return absl::UnavailableError("another process has the data folder");
  }
  Hindered(std::max(Clock::Duration(0), disk_.full_until - Now()) + StorageLoop::kRetry);
  if (Now() < disk_.slow_until) {
    Hindered(disk_.slow_until - Now() + Disk::kSlow);
  }
  MakeParts(welcome);
  open_ = true;
  WantStorage();
  Tick();
  return absl::OkStatus();
}

void ParameterServerProcess::MakeParts(const controller::Welcome& welcome) {
  const parameter_server::ServerId self{.slot = start().id.slot, .incarnation = incarnation()};
  parameter_server::Driver& driver = *this;
  core_.emplace(world_.setup.ParameterServerOptions(self, welcome.job_uid), disk_, clock_, driver);
  peers_.emplace(world_, *this, self, [this](const parameter_server::ServerId& peer) {
    core_->OnPeerConnected(peer);
  });
  workers_.emplace(world_, *this, *core_);
  records_.emplace(world_, *this, *core_);
  storage_.emplace(world_, *this, *core_, disk_, [this] { buckets_.Observe(); });
  buckets_.Start(*core_);
}

void ParameterServerProcess::Tick() {
  if (open_) {
    core_->Tick();
    buckets_.HearServed();
    After(world_.setup.times.beacon / 10, [this] { Tick(); });
  }
}

// --- What the controller asks for

void ParameterServerProcess::OnAttending() {
  if (storage_->has_read()) {
    Tell(core_->Stored());
    for (const parameter_server::BucketReport& report : core_->Reports()) {
      Report(report);
    }
  }
}

void ParameterServerProcess::OnControl(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    OnMembership(*view);
  } else if (const auto* take = std::get_if<controller::TakeSnapshot>(&message)) {
    workers_->RefuseWritersBelow(take->writers_from);
    storage_->Take(*take);
  }
}

void ParameterServerProcess::OnMembership(const controller::Membership& view) {
  auto configurations = view.buckets;
  if (world_.Has(Mutation::kInitialisesAgain) && !buckets_.HasObserved() && incarnation() > 1) {
    for (parameter_server::Configuration& line : configurations) {
      line.created = false;
    }
  }
  buckets_.SetConfigurations(configurations);
  core_->SetConfigurations(configurations, view.dead);
  peers_->Update(view);
}

controller::Heartbeat ParameterServerProcess::MakeHeartbeat() {
  controller::ParameterServerProgress progress{.updates_applied = core_->updates_applied(),
                                               .dirty_bytes = core_->flusher().dirty().bytes(),
                                               .flushes = core_->flusher().totals().flushes,
                                               .alarm = core_->alarm()};
  for (const parameter_server::BucketProgress& bucket : core_->Progress()) {
    progress.buckets.push_back(bucket);
  }
  return {.progress = std::move(progress)};
}

// --- What the core asks for

void ParameterServerProcess::SendToPeer(const parameter_server::ServerId& to,
                                        parameter_server::PeerMessage message) {
  peers_->SendTo(to, std::move(message));
}

void ParameterServerProcess::Propose(const parameter_server::Proposal& proposal) {
  Tell(protocol::Proposals{{proposal}});
}

void ParameterServerProcess::Report(const parameter_server::BucketReport& report) {
  Tell(parameter_server::ReadyOf({report}));
}

void ParameterServerProcess::WantApply() {
  if (!std::exchange(apply_planned_, true)) {
    After(world_.scheduler.Random(microseconds(5), microseconds(500)), [this] {
      apply_planned_ = false;
      core_->ApplyCommitted();
    });
  }
}

void ParameterServerProcess::WantStorage() { storage_->Want(); }

// --- Traffic

void ParameterServerProcess::OnServiceMessage(StreamId stream,
                                              StreamKind /*kind*/,
                                              Message& message) {
  if (!open_) {
    return world_.network.Close(stream, *this);
  }
  if (auto* letter = std::get_if<PeerLetter>(&message)) {
    OnPeerLetter(stream, *letter);
  } else if (const auto* peer = std::get_if<PeerHello>(&message)) {
    OnPeerHello(stream, *peer);
  } else if (std::holds_alternative<PeerHelloReply>(message)) {
    peers_->OnHelloReply(stream);
  } else if (const auto* hello = std::get_if<ExchangeHello>(&message)) {
    workers_->OnHello(stream, *hello);
  } else if (const auto* get = std::get_if<GetRecord>(&message)) {
    records_->OnGet(stream, *get);
  } else if (const auto* put = std::get_if<PutRecord>(&message)) {
    records_->OnPut(stream, *put);
  } else {
    workers_->OnMessage(stream, message);
  }
  buckets_.Observe();
}

void ParameterServerProcess::OnServiceEnded(StreamId stream, StreamKind kind) {
  peers_in_.erase(stream);
  if (workers_.has_value()) {
    workers_->OnEnded(stream);
  }
  if (kind == StreamKind::kReplication && peers_.has_value()) {
    peers_->OnEnded(stream);
  }
}

void ParameterServerProcess::OnPeerHello(StreamId stream, const PeerHello& hello) {
  if (hello.to != core_->options().self) {
    return world_.network.Close(stream, *this);
  }
  peers_in_[stream] = hello.from;
  Send(stream, PeerHelloReply{});
}

void ParameterServerProcess::OnPeerLetter(StreamId stream, PeerLetter& letter) {
  if (const auto from = peers_in_.find(stream); from != peers_in_.end()) {
    buckets_.OnPeerMessage(letter.message);
    core_->OnPeerMessage(from->second, std::move(letter.message));
  }
}

// --- The end

void ParameterServerProcess::Stop() {
  open_ = false;
  workers_->Close();
  storage_->Close();
  Leave();
}

void ParameterServerProcess::OnKilled(Death death) {
  if (!core_.has_value()) {
    return;  // it has no disk
  }
  const std::size_t survivors = world_.scheduler.rng().Below(disk_.store().unflushed() + 1);
  death == Death::kPowerLost || world_.Has(Mutation::kLyingDisk)
      ? disk_.store().LosePower(survivors)
      : disk_.store().Crash(survivors);
  disk_.locked = false;
  buckets_.OnEnded();
  if (death == Death::kPowerLost) {
    world_.updates.PowerLost(start().id.slot);
  }
  buckets_.OrphanBuckets();
}

void ParameterServerProcess::Pauses(Clock::Duration time) {
  Hindered(time);
  if (core_.has_value()) {
    buckets_.OrphanBuckets();
  }
}

}  // namespace adamant::simulation
