#include "services/common/service/control_stream.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/checksum.h"
#include "services/common/base/log.h"
#include "services/common/codec/control.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/resolve.h"
#include "services/common/rpc/stream_guard.h"
#include "services/common/rpc/tls/channel_security.h"

namespace adamant::service {
namespace {

using Stream = grpc::ClientReaderWriter<v1::MemberMessage, v1::ControllerMessage>;

// The membership of the largest job fits.
constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{64} << 20;

// Replication waits for the controller's word, so the way to it must come back soon after the
// network.
constexpr rpc::Liveness kLiveness{.connect = std::chrono::milliseconds(2000),
                                  .ask_after = std::chrono::milliseconds(2000),
                                  .give_up_after = std::chrono::milliseconds(3000)};

// Sends from `queue` until it is interrupted, or closed and empty, or the stream breaks.
void SendAll(SendQueue& queue, Stream& stream) {
  while (const std::optional<v1::MemberMessage> message = queue.Take()) {
    if (!stream.Write(*message)) {
      return;
    }
  }
  if (queue.finished()) {
    stream.WritesDone();
  }
}

}  // namespace

ControlStream::ControlStream(std::string controller,
                             BackoffOptions backoff,
                             std::chrono::milliseconds term_interval)
    : controller_(std::move(controller)), backoff_(backoff), term_interval_(term_interval) {}

ControlStream::~ControlStream() { Leave(std::chrono::milliseconds(0)); }

void ControlStream::Join(protocol::Join join,
                         std::string job,
                         std::shared_ptr<const rpc::ChannelSecurity> security) {
  join_ = std::move(join);
  job_ = std::move(job);
  security_ = std::move(security);
  {
    MutexLock lock(mutex_);
    running_ = true;
  }
  thread_ = std::jthread([this] { Run(); });
  term_watch_.emplace(
      controller_, job_, [this](std::uint64_t term) { OnTerm(term); }, term_interval_, security_);
}

void ControlStream::Send(const protocol::MemberMessage& message) {
  if (!queue_.Push(codec::Encode(message))) {
    LogWarning("controller away for long: dropped the oldest message to it");
  }
}

void ControlStream::Fail(const absl::Status& reason, bool fatal) {
  FailWith(reason, {.fatal = fatal});
}

void ControlStream::FailDiverged(const absl::Status& reason) {
  // `fatal` is for controllers that do not know divergence.
  FailWith(reason, {.fatal = true, .diverged = true});
}

void ControlStream::Refuse(const absl::Status& reason) {
  FailWith(reason, {.fatal = true, .invalid = true});
}

void ControlStream::FailWith(const absl::Status& reason, protocol::Failure failure) {
  failure.message = std::string(reason.message());
  MutexLock lock(mutex_);
  if (end_.has_value()) {
    return;
  }
  Send(std::move(failure));  // before the end is seen, after which nothing more is sent
  end_ = End{reason};
  changed_.NotifyAll();
}

bool ControlStream::stopping() const {
  MutexLock lock(mutex_);
  return stop_requested_ || end_.has_value();
}

void ControlStream::RequestStop() {
  MutexLock lock(mutex_);
  stop_requested_ = true;
  changed_.NotifyAll();
}

ControlStream::Event ControlStream::Next() {
  MutexLock lock(mutex_);
  while (!HasEvent()) {
    changed_.Wait(mutex_);
  }
  return TakeEvent();
}

std::optional<ControlStream::Event> ControlStream::NextWithin(std::chrono::milliseconds time) {
  MutexLock lock(mutex_);
  if (!HasEvent()) {
    changed_.WaitFor(mutex_, time);
  }
  return HasEvent() ? std::optional(TakeEvent()) : std::nullopt;
}

bool ControlStream::HasEvent() const {
  return end_.has_value() || stop_requested_ || !events_.empty();
}

ControlStream::Event ControlStream::TakeEvent() {
  if (end_.has_value()) {
    return *end_;
  }
  if (std::exchange(stop_requested_, false)) {
    return StopRequested{};
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void ControlStream::OnTerm(std::uint64_t term) {
  MutexLock lock(mutex_);
  if (term > term_) {
    term_ = term;
    if (call_ != nullptr && attending_) {
      call_->TryCancel();  // of a controller that was replaced
    }
  }
}

void ControlStream::Leave(std::chrono::milliseconds timeout) {
  term_watch_.reset();
  queue_.Close();
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  {
    MutexLock lock(mutex_);
    leaving_ = true;
    changed_.NotifyAll();
    while (running_ && attending_ && std::chrono::steady_clock::now() < deadline) {
      changed_.WaitFor(mutex_, deadline - std::chrono::steady_clock::now());
    }
    if (call_ != nullptr) {
      call_->TryCancel();
    }
  }
  thread_ = {};
}

void ControlStream::Run() {
  const std::string& uid = join_.uid;
  Backoff backoff(backoff_, Checksum(std::as_bytes(std::span(uid))));
  Verdict verdict = Verdict::kTryAgain;
  while (verdict != Verdict::kOver) {
    grpc::ClientContext context;
    {
      MutexLock lock(mutex_);
      if (leaving_) {
        break;
      }
      call_ = &context;
    }
    verdict = Attend(context);
    MutexLock lock(mutex_);
    call_ = nullptr;
    if (std::exchange(attending_, false)) {
      backoff.Reset();
    }
    changed_.NotifyAll();
    if (verdict == Verdict::kTryAgain && !leaving_) {
      changed_.WaitFor(mutex_, backoff.Next());
    }
  }
  MutexLock lock(mutex_);
  running_ = false;
  changed_.NotifyAll();
}

ControlStream::Verdict ControlStream::Attend(grpc::ClientContext& context) {
  const std::vector<std::string> addresses = rpc::Resolve(controller_);
  const std::string& address = addresses[attempts_++ % addresses.size()];
  const auto channel = rpc::NewChannel(address, kMaxMessageBytes, kLiveness, security_.get());
  const auto stub = v1::Controller::NewStub(channel);
  context.AddMetadata(rpc::kJobKey, job_);
  const std::unique_ptr<Stream> stream = stub->Attend(&context);
  v1::MemberMessage first = codec::Encode(join_);
  first.mutable_join()->set_job(job_);
  first.mutable_join()->set_incarnation(welcome_.has_value() ? welcome_->incarnation() : 0);
  stream->Write(first);
  v1::ControllerMessage message;
  if (!stream->Read(&message)) {
    ReportAway(stream->Finish().error_message());
    return Verdict::kTryAgain;
  }
  Verdict verdict = Answered(message);
  if (verdict != Verdict::kGoOn) {
    context.TryCancel();
    stream->Finish();
    return verdict;
  }
  queue_.Resume();
  std::jthread sender([&] { SendAll(queue_, *stream); });
  while (verdict == Verdict::kGoOn && stream->Read(&message)) {
    verdict = Received(message);
  }
  context.TryCancel();
  queue_.Interrupt();
  sender = {};
  const std::string why = stream->Finish().error_message();
  if (verdict == Verdict::kOver) {
    return verdict;
  }
  ReportAway(why);
  return Verdict::kTryAgain;
}

ControlStream::Verdict ControlStream::Answered(const v1::ControllerMessage& answer) {
  if (answer.has_refused() || answer.has_stop()) {
    return Received(answer) == Verdict::kOver ? Verdict::kOver : Verdict::kTryAgain;
  }
  if (!answer.has_welcome()) {
    ReportAway("its first answer was not Welcome");
    return Verdict::kTryAgain;
  }
  const v1::Welcome& welcome = answer.welcome();
  bool is_older = false;
  {
    MutexLock lock(mutex_);
    is_older = welcome.term() < term_;
    term_ = std::max<std::uint64_t>(term_, welcome.term());
  }
  if (is_older) {
    ReportAway("an older controller answered");
    return Verdict::kTryAgain;
  }
  if (welcome_.has_value() && (welcome.incarnation() != welcome_->incarnation() ||
                               welcome.job_uid() != welcome_->job_uid())) {
    EndWith(absl::AbortedError("the controller at " + controller_ +
                               " does not know this process any more"));
    return Verdict::kOver;
  }
  away_ = false;
  LogInfo("joined",
          {{"controller", controller_},
           {"term", welcome.term()},
           {"incarnation", welcome.incarnation()}});
  const bool first = !std::exchange(welcome_, welcome).has_value();
  MutexLock lock(mutex_);
  attending_ = true;
  if (first) {
    events_.emplace_back(welcome);
  } else {
    events_.emplace_back(Rejoined{});
  }
  changed_.NotifyAll();
  return leaving_ ? Verdict::kTryAgain : Verdict::kGoOn;
}

ControlStream::Verdict ControlStream::Received(const v1::ControllerMessage& message) {
  if (message.has_refused()) {
    EndWith(absl::FailedPreconditionError("the controller at " + controller_ +
                                          " refused this process: " + message.refused().reason()));
    return Verdict::kOver;
  }
  if (message.has_stop()) {
    LogInfo("told to stop", {{"reason", message.stop().reason()}});
    EndWith(absl::OkStatus());
  } else if (auto decoded = codec::Decode(message); decoded.has_value()) {
    AddEvent(*std::move(decoded));
  }
  return Verdict::kGoOn;
}

void ControlStream::ReportAway(std::string_view why) {
  if (IsEnding() || std::exchange(away_, true)) {
    return;  // nobody is missed by a process that ends
  }
  LogWarning("controller unreachable, trying on", {{"controller", controller_}, {"why", why}});
  if (welcome_.has_value()) {
    AddEvent(Away{});
  }
}

bool ControlStream::IsEnding() const {
  MutexLock lock(mutex_);
  return leaving_ || end_.has_value();
}

void ControlStream::EndWith(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (!end_.has_value()) {
    end_ = End{status};
  }
  changed_.NotifyAll();
}

void ControlStream::AddEvent(Event event) {
  MutexLock lock(mutex_);
  events_.push_back(std::move(event));
  changed_.NotifyAll();
}

}  // namespace adamant::service
