#include "tests/simulation/replication/processes/foreman.h"

#include <utility>
#include <variant>

#include "tests/simulation/replication/processes/cluster.h"

namespace adamant::replication_simulation {
namespace {

constexpr auto kBeat = seconds(1);
constexpr auto kTryAgain = milliseconds(300);
constexpr auto kLookAgain = milliseconds(50);

}  // namespace

Foreman::Foreman(World& world, Cluster& cluster, std::uint64_t generation, const std::string& uid)
    : ControlledProcess("foreman"),
      world_(world),
      cluster_(cluster),
      generation_(generation),
      uid_(uid) {
  world_.scheduler.After(milliseconds(50), life, [this] {
    Connect();
    Heartbeat();
  });
}

Place Foreman::place() const { return world_.foreman_place(); }

void Foreman::Connect() {
  connection_ = cluster_.Connect(*this);
  if (connection_ == 0) {
    return world_.scheduler.After(kTryAgain, life, [this] { Connect(); });
  }
  Tell(controller::Join{.id = {controller::Role::kWorker, 0},
                        .uid = uid_,
                        .incarnation = incarnation_,
                        .generation = generation_});
}

void Foreman::OnBroken(std::uint64_t connection) {
  if (connection == connection_) {
    connection_ = 0;
    world_.scheduler.After(kTryAgain, life, [this] { Connect(); });
  }
}

void Foreman::Tell(controller::MemberMessage message) {
  if (connection_ != 0) {
    cluster_.TellController(connection_, std::move(message));
  }
}

void Foreman::Heartbeat() {
  if (incarnation_ != 0) {
    Tell(controller::Heartbeat{.progress = controller::WorkerProgress{}});
  }
  world_.scheduler.After(kBeat, life, [this] { Heartbeat(); });
}

void Foreman::OnControllerMessage(std::uint64_t connection,
                                  const controller::ControllerMessage& message) {
  if (connection != connection_) {
    return;
  }
  if (const auto* welcome = std::get_if<controller::Welcome>(&message)) {
    incarnation_ = welcome->incarnation;
    cluster_.BeginAttempt(welcome->attempt);
  } else if (const auto* pause = std::get_if<controller::PausePushes>(&message)) {
    pausing_ = pause->checkpoint;
    cluster_.Pause(true);
    AwaitRest(pause->checkpoint);
  } else if (const auto* resume = std::get_if<controller::ResumePushes>(&message)) {
    if (pausing_.has_value() && resume->checkpoint >= *pausing_) {
      pausing_.reset();
      cluster_.Pause(false);
    }
  } else if (std::holds_alternative<controller::Refused>(message)) {
    cluster_.EndForeman();
  }
}

void Foreman::AwaitRest(std::uint64_t checkpoint) {
  if (pausing_ != checkpoint) {
    return;
  }
  if (cluster_.IsAtRest()) {
    return Tell(controller::PushesPaused{.checkpoint = checkpoint, .sequence = checkpoint});
  }
  world_.scheduler.After(kLookAgain, life, [this, checkpoint] { AwaitRest(checkpoint); });
}

}  // namespace adamant::replication_simulation
