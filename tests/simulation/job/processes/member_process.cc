#include "tests/simulation/job/processes/member_process.h"

#include <utility>
#include <variant>

namespace adamant::simulation {
namespace {

LifePtr NewLife(const ProcessStart& start) {
  auto life = std::make_shared<Life>();
  life->name = controller::ToString(start.id) + "#" + std::to_string(start.number);
  return life;
}

}  // namespace

MemberProcess::MemberProcess(World& world,
                             const ProcessStart& start,
                             std::function<void(std::string)> exited)
    : Endpoint(NewLife(start)),
      world_(world),
      clock_(world.scheduler, world.setup.drift.at(start.id)),
      start_(start),
      exited_(std::move(exited)),
      backoff_({}, start.number) {
  world_.network.Listen(address(), *this);
  After(world_.scheduler.Random(milliseconds(1), milliseconds(50)), [this] { Attend(); });
}

void MemberProcess::Attend() {
  control_ = world_.network.Open(*this, kControllerAddress, StreamKind::kControl);
  Send(control_,
       controller::Join{.id = start_.id,
                        .uid = life->name,
                        .address = address(),
                        .incarnation = incarnation(),
                        .replication_address = address(),
                        .generation = start_.generation});
}

void MemberProcess::OnMessage(StreamId stream, StreamKind kind, Message& message) {
  if (stream != control_) {
    if (started_) {
      OnServiceMessage(stream, kind, message);
    } else {
      world_.network.Close(stream, *this);  // starting
      OnServiceEnded(stream, kind);
    }
  } else if (const auto* control = std::get_if<controller::ControllerMessage>(&message)) {
    OnControlMessage(*control);
  }
}

void MemberProcess::OnEnded(StreamId stream, StreamKind kind) {
  if (stream != control_) {
    return OnServiceEnded(stream, kind);
  }
  control_ = 0;
  if (std::exchange(attending_, false)) {
    backoff_.Reset();
    if (started_ && !end_.has_value()) {
      OnAway();
    }
  }
  if (!over_) {
    After(backoff_.Next(), [this] { Attend(); });
  }
}

void MemberProcess::OnControlMessage(const controller::ControllerMessage& message) {
  if (const auto* refused = std::get_if<controller::Refused>(&message)) {
    over_ = true;
    return End(absl::FailedPreconditionError("was refused: " + refused->reason));
  }
  if (std::holds_alternative<controller::Stop>(message)) {
    return End(absl::OkStatus());
  }
  if (const auto* welcome = std::get_if<controller::Welcome>(&message)) {
    return OnWelcome(*welcome);
  }
  if (attending_ && started_ && !end_.has_value()) {
    OnControl(message);
  }
}

void MemberProcess::OnWelcome(const controller::Welcome& welcome) {
  if (welcome_.has_value() && welcome.term < welcome_->term) {
    world_.network.Close(control_, *this);  // an older controller
    return OnEnded(control_, StreamKind::kControl);
  }
  if (welcome_.has_value() &&
      (welcome.incarnation != welcome_->incarnation || welcome.job_uid != welcome_->job_uid)) {
    over_ = true;
    return End(absl::AbortedError("is not known any more"));
  }
  const bool first = !std::exchange(welcome_, welcome).has_value();
  attending_ = true;
  for (controller::MemberMessage& message : std::exchange(waiting_, {})) {
    Send(control_, std::move(message));
  }
  if (!first) {
    return started_ && !end_.has_value() ? OnAttending() : void();
  }
  world_.job.Admitted(start_.id, welcome.incarnation);
  if (const absl::Status status = Start(welcome); !status.ok()) {
    return Fail(status);
  }
  started_ = true;
  Beat();
}

void MemberProcess::Beat() {
  if (!end_.has_value()) {
    Tell(MakeHeartbeat());
    After(seconds(1), [this] { Beat(); });
  }
}

void MemberProcess::Tell(controller::MemberMessage message) {
  if (attending_) {
    return Send(control_, std::move(message));
  }
  if (std::holds_alternative<controller::Heartbeat>(message)) {
    std::erase_if(waiting_, [](const controller::MemberMessage& other) {
      return std::holds_alternative<controller::Heartbeat>(other);
    });
  }
  waiting_.push_back(std::move(message));
  if (waiting_.size() > kMostWaiting) {
    waiting_.pop_front();
  }
}

void MemberProcess::Fail(const absl::Status& reason) {
  if (!end_.has_value()) {
    Tell(controller::Failure{.message = std::string(reason.message()),
                             .fatal = absl::IsInvalidArgument(reason)});
    End(reason);
  }
}

void MemberProcess::End(absl::Status status) {
  if (end_.has_value()) {
    return;
  }
  end_ = std::move(status);
  world_.scheduler.Record(life->name, "ends: " + std::string(end_->message()));
  if (started_) {
    Stop();
  } else {
    Leave();
  }
}

void MemberProcess::Leave() {
  if (end_->ok()) {
    Tell(controller::Leaving{});
  }
  // The stream takes what was told along; then the process is gone.
  After(milliseconds(10), [this] {
    if (control_ != 0) {
      world_.network.Close(control_, *this);
    }
    exited_(end_->ok() ? "exited with code 0" : "exited with code 1");
  });
}

}  // namespace adamant::simulation
