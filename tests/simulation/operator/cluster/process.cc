#include "tests/simulation/operator/cluster/process.h"

#include <utility>
#include <variant>

namespace adamant::orchestration {
namespace {

constexpr milliseconds kReconnect{300};
constexpr seconds kHeartbeat{4};
constexpr seconds kPropose{2};
constexpr std::uint64_t kExamplesOfAPart = 10;

}  // namespace

Process::Process(World& world, Network& network, Settings settings, std::function<void(int)> exited)
    : world_(world),
      network_(network),
      settings_(std::move(settings)),
      exited_(std::move(exited)),
      life_(std::make_shared<Life>(Life{.name = ToString(settings_.id)})) {
  world_.scheduler.After(milliseconds(10), life_, [this] { Connect(); });
  world_.scheduler.After(kHeartbeat, life_, [this] { Beat(); });
  if (settings_.volume != nullptr) {
    world_.scheduler.After(kPropose, life_, [this] { ProposeSometimes(); });
  }
}

void Process::Kill() {
  if (!life_->ended) {
    life_->ended = true;
    if (server_ != nullptr) {
      settings_.servers->erase({settings_.id.slot, incarnation_});
    }
    network_.CloseByMember(connection_);
  }
}

void Process::Exit(int code) {
  Kill();
  exited_(code);
}

void Process::Connect() {
  if (settings_.volume != nullptr) {  // the store's lock
    LifePtr& user = settings_.volume->user;
    if (user != nullptr && user != life_ && !user->ended) {
      return world_.scheduler.After(kReconnect, life_, [this] { Connect(); });
    }
    user = life_;
  }
  connection_ = network_.Connect(settings_.job, *this);
  if (connection_ == 0) {
    return world_.scheduler.After(kReconnect, life_, [this] { Connect(); });
  }
  controller::Join join;
  join.id = settings_.id;
  join.uid = settings_.uid;
  join.address = settings_.uid + ":1";
  join.incarnation = incarnation_;
  join.generation = settings_.generation;
  join.pod_uid = settings_.uid;
  network_.ToController(connection_, std::move(join));
}

void Process::OnClosed(controller::ConnectionId connection) {
  if (connection == connection_) {
    connection_ = 0;
    world_.scheduler.After(kReconnect, life_, [this] { Connect(); });
  }
}

void Process::Beat() {
  if (incarnation_ != 0) {
    Answer(controller::Heartbeat{});
  }
  world_.scheduler.After(kHeartbeat, life_, [this] { Beat(); });
}

void Process::Answer(controller::MemberMessage message, Clock::Duration after) {
  if (after == Clock::Duration{}) {
    return network_.ToController(connection_, std::move(message));
  }
  world_.scheduler.After(after, life_, [this, message = std::move(message)] {
    network_.ToController(connection_, message);
  });
}

void Process::OnMessage(const controller::ControllerMessage& message) {
  if (const auto* welcome = std::get_if<controller::Welcome>(&message)) {
    return OnWelcome(*welcome);
  }
  if (const auto* refused = std::get_if<controller::Refused>(&message)) {
    world_.scheduler.Record(life_->name, "is refused: " + refused->reason);
    return Exit(0);
  }
  if (std::holds_alternative<controller::Stop>(message)) {
    dismissed_ = true;
    return Exit(0);
  }
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    return OnMembership(*view);
  }
  switch (settings_.id.role) {
    case controller::Role::kDataServer:
      return ObeyAsDataServer(message);
    case controller::Role::kWorker:
      return ObeyAsWorker(message);
    case controller::Role::kParameterServer:
      if (const auto* take = std::get_if<controller::TakeSnapshot>(&message);
          take != nullptr && server_ != nullptr) {
        Answer(server_->Take(*take), milliseconds(50));
      }
  }
}

void Process::OnWelcome(const controller::Welcome& welcome) {
  if (welcome.term < term_) {  // of a controller that has been succeeded
    network_.CloseByMember(connection_);
    connection_ = 0;
    return world_.scheduler.After(kReconnect, life_, [this] { Connect(); });
  }
  term_ = welcome.term;
  incarnation_ = welcome.incarnation;
  if (settings_.volume != nullptr) {
    if (server_ == nullptr) {
      const controller::ServerId self{settings_.id.slot, incarnation_};
      server_ = std::make_unique<controller::ServerModel>(self, settings_.volume->disk);
      (*settings_.servers)[self] = server_.get();
    }
    Answer(server_->Stored());
  }
  Answer(controller::Heartbeat{}, milliseconds(100));  // it has loaded what it needs
}

void Process::OnMembership(const controller::Membership& view) {
  if (view.version < view_.version) {
    return;  // of a controller that has been succeeded
  }
  view_ = view;
  if (server_ != nullptr) {
    Answer(server_->OnMembership(view));
  }
}

void Process::ProposeSometimes() {
  if (server_ != nullptr && connection_ != 0) {
    Servers& servers = *settings_.servers;
    const auto silent = [&](const controller::ServerId& server) {
      return !servers.contains(server);
    };
    const auto copy = [&](BucketId bucket, const controller::ServerId& learner) {
      const auto found = servers.find(learner);
      if (found != servers.end()) {
        found->second->Receive(bucket);
      }
      return found != servers.end();
    };
    controller::Proposals proposals = server_->Propose(silent, copy);
    if (!proposals.proposals.empty()) {
      Answer(std::move(proposals));
    }
  }
  world_.scheduler.After(kPropose, life_, [this] { ProposeSometimes(); });
}

void Process::ObeyAsDataServer(const controller::ControllerMessage& message) {
  if (const auto* open = std::get_if<controller::OpenEpoch>(&message)) {
    if (!view_.part_owner.empty() && view_.part_owner.front() == settings_.id.slot) {
      Answer(controller::EpochEnded{open->epoch}, seconds(2));
    }
  } else if (const auto* close = std::get_if<controller::CloseEpoch>(&message)) {
    for (std::uint32_t part = 0; part < view_.part_owner.size(); ++part) {
      if (view_.part_owner[part] == settings_.id.slot) {
        Answer(controller::PartClosed{
            .epoch = close->epoch, .part = part, .counted_examples = kExamplesOfAPart});
      }
    }
  } else if (const auto* evaluate = std::get_if<controller::Evaluate>(&message)) {
    Answer(controller::Evaluated{.epoch = evaluate->epoch,
                                 .snapshot = evaluate->snapshot,
                                 .examples = 10,
                                 .correct = 9,
                                 .loss_sum = 1},
           milliseconds(200));
  }
}

void Process::ObeyAsWorker(const controller::ControllerMessage& message) {
  if (const auto* flush = std::get_if<controller::FlushWorker>(&message)) {
    Answer(controller::WorkerFlushed{flush->epoch}, milliseconds(50));
  } else if (const auto* pause = std::get_if<controller::PausePushes>(&message)) {
    Answer(controller::PushesPaused{.checkpoint = pause->checkpoint});
  }
}

}  // namespace adamant::orchestration
