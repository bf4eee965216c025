#include "tests/bench/stale/virtual_worker.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "services/common/base/status_macros.h"

namespace adamant::bench {
namespace {

constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{4} << 20;  // a worker's

std::uint64_t BytesOf(const worker::PushPayload& payload) {
  std::uint64_t floats = 0;
  for (const worker::PushPayload::Operands& operands : payload.operands) {
    floats += std::uint64_t{operands.rows} * (operands.inputs + operands.outputs);
  }
  for (const worker::ShardUpdate& update : payload.updates) {
    floats += update.values.size();
  }
  return floats * sizeof(float);
}

std::uint64_t BytesOf(const VirtualServers::Fetched& fetched) {
  std::uint64_t floats = 0;
  for (const parameter_server::ShardValue& value : fetched.values) {
    floats += value.values.size();
  }
  return floats * sizeof(float);
}

}  // namespace

VirtualWorker::VirtualWorker(const VirtualWorkerOptions& options, const VirtualJob& job)
    : options_(options),
      job_(job),
      pace_(options.pace,
            MixSeed(options.training.seed, options.self.slot, options.self.incarnation)),
      connections_(job.servers.count()),
      worker_(
          {.training = options.training, .synchroniser = {.max_message_bytes = kMaxMessageBytes}},
          job.graph,
          job.layout,
          job.plan,
          [] {}) {}

absl::StatusOr<std::unique_ptr<VirtualWorker>> VirtualWorker::Create(
    const VirtualWorkerOptions& options, const VirtualJob& job) {
  std::unique_ptr<VirtualWorker> worker(new VirtualWorker(options, job));
  const auto channels = static_cast<std::size_t>(job.graph.input[0]);
  ADAMANT_RETURN_IF_ERROR(worker->worker_.intake().SetNormalisation(
      {.mean = std::vector<float>(channels, 0), .deviation = std::vector<float>(channels, 255)}));
  ADAMANT_RETURN_IF_ERROR(worker->MakeThreads());
  ADAMANT_RETURN_IF_ERROR(job.servers.Admit(options.self));
  for (worker::ServerSlot server = 0; server < job.servers.count(); ++server) {
    worker->worker_.synchroniser().OnParameterServer(server, /*connected=*/true);
  }
  worker->worker_.intake().OnDataServer(0, /*connected=*/true);
  return worker;
}

absl::Status VirtualWorker::MakeThreads() {
  for (std::size_t i = 0; i < worker_.learner().threads(); ++i) {
    Member& member = members_.emplace_back();
    member.clock = std::make_unique<StepClock>(job_.clock);
    ADAMANT_ASSIGN_OR_RETURN(
        member.thread,
        worker::TrainingThread::Create(worker_.learner(), worker_.intake(), i, *member.clock));
  }
  return absl::OkStatus();
}

// An event of this worker, which must not go before it.
void VirtualWorker::At(Clock::TimePoint time, std::function<void()> event) {
  ++events_;
  job_.clock.At(time, [this, event = std::move(event)] {
    --events_;
    event();
  });
}

void VirtualWorker::Stop() {
  stopping_ = true;
  worker_.synchroniser().Stop();
  Wake();
}

void VirtualWorker::Wake() {
  const Clock::TimePoint awake = pace_.Awake(job_.clock.Now());
  if (awake > job_.clock.Now()) {
    At(awake, [this] { Wake(); });
    return;
  }
  for (bool more = true; more && status_.ok();) {
    TakeBatches();
    more = AdvanceSynchroniser();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      more = Advance(i) || more;
    }
  }
  SetTimer();
}

void VirtualWorker::TakeBatches() {
  worker::Intake& intake = worker_.intake();
  while (!stopping_ && dispatched_ < intake.window()) {
    worker::Batch* const batch = intake.TakeSlot();
    if (batch == nullptr) {
      break;
    }
    if (!job_.scheduler.Dispatch(options_.self.slot, *batch)) {
      intake.Recycle(batch);
      break;
    }
    intake.Put(batch);
    ++dispatched_;
  }
  intake.SetDrained(job_.scheduler.Drained());
}

// Whether it sent something.
bool VirtualWorker::AdvanceSynchroniser() {
  status_.Update(worker_.synchroniser().Advance(job_.clock.Now()));
  auto messages = worker_.synchroniser().TakeMessages();
  for (worker::Synchroniser::Message& message : messages) {
    std::visit([this](auto& each) { Handle(each); }, message);
  }
  return !messages.empty();
}

// Whether the thread did something that is over, or began a step.
bool VirtualWorker::Advance(std::size_t index) {
  Member& member = members_[index];
  if (member.steps) {
    return false;
  }
  if (!member.step.has_value()) {
    member.step = pace_.NextStep();
  }
  const Clock::TimePoint end = pace_.Done(job_.clock.Now(), *member.step);
  member.clock->Begin(end);
  worker::ThreadChannel& channel = worker_.learner().channel(index);
  const std::uint64_t before = channel.statistics().steps.load();
  const auto progress = Advance(member, channel);
  if (channel.statistics().steps.load() == before) {
    return Exchanged(index) || progress == worker::TrainingThread::Progress::kWorked;
  }
  member.step.reset();
  member.steps = true;
  At(end, [this, index] {
    members_[index].steps = false;
    Exchanged(index);
    Wake();
  });
  return true;
}

// What the thread tells is kept from the synchroniser; what that has not taken yet stays.
worker::TrainingThread::Progress VirtualWorker::Advance(Member& member,
                                                        worker::ThreadChannel& channel) {
  const std::size_t before = channel.pending();
  const auto progress = member.thread->Advance();
  const std::size_t all = channel.pending();
  for (std::size_t i = 0; i < all; ++i) {
    const worker::ThreadEvent event = *channel.Front();
    channel.Pop();
    if (i < before) {
      channel.Emit(event);
    } else {
      member.told.push_back(event);
    }
  }
  return progress;
}

// What the thread told is told the synchroniser; whether that was anything.
bool VirtualWorker::Exchanged(std::size_t index) {
  const auto told = std::exchange(members_[index].told, {});
  for (const worker::ThreadEvent& event : told) {
    worker_.learner().channel(index).Emit(event);
  }
  return !told.empty();
}

void VirtualWorker::SetTimer() {
  const std::optional<Clock::TimePoint> next = worker_.synchroniser().NextAdvance();
  if (next == timer_ || !status_.ok()) {
    return;
  }
  timer_ = next;
  if (next.has_value()) {
    At(pace_.Awake(*next), [this, at = *next] {
      if (timer_ == at) {
        timer_.reset();
        Wake();
      }
    });
  }
}

// When a message that is sent now has come to the server.
Clock::TimePoint VirtualWorker::Send(worker::ServerSlot server, std::uint64_t bytes) {
  const Clock::TimePoint come = job_.network.Send(
      job_.clock.Now(), bytes, pace_.NextLatency(), link_, job_.servers.link(server));
  Clock::TimePoint& last = connections_[server].there;
  last = std::max(last, come);
  return last;
}

// When an answer that is sent now has come, and the process looks at it.
Clock::TimePoint VirtualWorker::Answer(worker::ServerSlot server, std::uint64_t bytes) {
  const Clock::TimePoint come = job_.network.Send(
      job_.clock.Now(), bytes, pace_.NextLatency(), job_.servers.link(server), link_);
  Clock::TimePoint& last = connections_[server].back;
  last = std::max(last, come);
  return pace_.Awake(last);
}

void VirtualWorker::Handle(worker::PushMessage& push) {
  // The payload stays lent to the message until it has come.
  auto payload =
      std::make_shared<const worker::PushPayload>(worker_.synchroniser().PayloadOf(push));
  const Clock::TimePoint come = Send(push.server, BytesOf(*payload));
  At(come, [this, push = std::move(push), payload] {
    VirtualLink& server = job_.servers.link(push.server);
    At(job_.network.Apply(job_.clock.Now(), server),
       [this, push, payload] { Apply(push, *payload); });
  });
}

void VirtualWorker::Apply(const worker::PushMessage& push, const worker::PushPayload& payload) {
  const worker::PushReply reply = job_.servers.Apply(options_.self, push, payload);
  At(Answer(push.server, /*bytes=*/0), [this, reply] {
    status_.Update(worker_.synchroniser().OnPushReply(reply, job_.clock.Now()));
    Wake();
  });
}

void VirtualWorker::Handle(worker::FetchMessage& fetch) {
  const Clock::TimePoint come = Send(fetch.server, /*bytes=*/0);
  At(come, [this, fetch = std::move(fetch)] {
    auto fetched = job_.servers.Fetch(options_.self, fetch);
    status_.Update(fetched.status());
    if (fetched.ok()) {
      const Clock::TimePoint back = Answer(fetch.server, BytesOf(*fetched));
      At(back, [this, fetched = *std::move(fetched)] { OnFetched(fetched); });
    }
  });
}

void VirtualWorker::OnFetched(const VirtualServers::Fetched& fetched) {
  auto next = fetched.values.begin();
  const auto read = [&](std::span<float> out) {
    while (next->values.empty()) {
      ++next;
    }
    std::ranges::copy((next++)->values, out.begin());
    return absl::OkStatus();
  };
  status_.Update(worker_.synchroniser().OnFetchReply(fetched.reply, read, job_.clock.Now()));
  Wake();
}

void VirtualWorker::Handle(const worker::AcknowledgeMessage& message) {
  std::vector<worker::Lease> leases;
  for (const worker::LeaseResult& result : message.results) {
    job_.scheduler.Acknowledge(result);
    leases.push_back(result.lease);
  }
  dispatched_ -= leases.size();
  worker_.intake().OnAcknowledged(leases);
}

void VirtualWorker::Handle(const worker::HandBackMessage& message) {
  for (const worker::Lease& lease : message.leases) {
    job_.scheduler.HandBack(lease);
  }
  dispatched_ -= message.leases.size();
}

}  // namespace adamant::bench
