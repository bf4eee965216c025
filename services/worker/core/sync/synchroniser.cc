#include "services/worker/core/sync/synchroniser.h"

#include <algorithm>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

PushTrackerOptions TrackerOptions(const UpdatePlan& plan, const SynchroniserOptions& options) {
  return {.pushed = plan.pushed,
          .max_pushes = ThreadChannel::kAccumulators - 2,
          .max_message_bytes = options.max_message_bytes,
          .retain = options.retain_bytes > 0};
}

}  // namespace

Synchroniser::Synchroniser(Learner& learner, Intake& intake, const SynchroniserOptions& options)
    : learner_(learner),
      intake_(intake),
      routes_(learner.layout()),
      pushes_(TrackerOptions(learner.plan(), options), learner.layout(), routes_),
      fetches_(options.max_message_bytes, learner.layout(), routes_),
      store_(learner, options.retain_bytes),
      asynchrony_(AsynchronyOptionsOf(learner.options(), learner.plan()),
                  learner.plan(),
                  learner.layout().shards().size()),
      gatherer_(learner, asynchrony_),
      refusals_(learner.plan(), learner.layout()),
      flush_(learner),
      fetcher_(learner, fetches_, pushes_, store_, asynchrony_) {}

void Synchroniser::OnPlacement(const PlacementView& placement) {
  routes_.OnPlacement(placement);
  pushes_.OnPlacement();
  fetches_.OnPlacement();
  asynchrony_.OnWorkers(placement.workers);
}

void Synchroniser::OnParameterServer(ServerSlot server, bool connected) {
  if (connected) {
    routes_.OnConnected(server);
  } else {
    routes_.OnDisconnected(server);
    pushes_.OnDisconnected(server);
    fetches_.OnDisconnected(server);
  }
}

absl::Status Synchroniser::OnPushReply(const PushReply& reply, Clock::TimePoint now) {
  for (const ShardAck& ack : reply.acks) {
    if (ack.outcome == PushOutcome::kApplied) {
      statistics_.update_staleness.Add(ack.update_staleness);
    }
  }
  if (const std::optional<Sequence> sequence = pushes_.SequenceOf(reply.request)) {
    asynchrony_.meter().OnReply(*sequence, reply.acks);
    if (const double gap = asynchrony_.meter().last_gap_examples(); gap >= 0) {
      statistics_.batches_of_others.Add(
          static_cast<std::uint64_t>(gap / static_cast<double>(learner_.options().batch_size)));
    }
  }
  return pushes_.OnReply(reply, now);
}

void Synchroniser::Flush(DataEpoch epoch) {
  flush_.Begin(epoch);
  pause_.ResumeAny();
  ring_ = true;
}

void Synchroniser::Stop() {
  learner_.commands().Stop();
  pause_.ResumeAny();
  ring_ = true;
}

absl::Status Synchroniser::Advance(Clock::TimePoint now) {
  pause_.Advance(now);
  intake_.Settle(pause_.due());
  ADAMANT_RETURN_IF_ERROR(Retire(now));
  store_.Tidy();
  TakeEvents(now);
  ADAMANT_RETURN_IF_ERROR(StartPushes(now));
  ring_ = fetcher_.FinishRenewal() || ring_;
  if (fetcher_.snapshot().StartDue()) {
    PollServers(now);
  }
  pushes_.AskForFlush(store_.NearlyFull());
  asynchrony_.HoldBack(store_.NearlyFull());
  PollServers(now);
  ring_ = store_.TakeRecycled() || ring_;
  if (std::exchange(ring_, false)) {
    learner_.notifier().Notify();
  }
  return absl::OkStatus();
}

void Synchroniser::PollServers(Clock::TimePoint now) {
  for (PushTracker::Message& message : pushes_.Poll(now)) {
    std::visit([&](auto& m) { outbox_.emplace_back(std::move(m)); }, message);
  }
  for (FetchMessage& message : fetches_.Poll(now)) {
    outbox_.emplace_back(std::move(message));
  }
  for (Intake::Message& message : intake_.Poll(now)) {
    std::visit([&](auto& m) { outbox_.emplace_back(std::move(m)); }, message);
  }
}

std::vector<Synchroniser::Message> Synchroniser::TakeMessages() {
  return std::exchange(outbox_, {});
}

std::optional<Clock::TimePoint> Synchroniser::NextAdvance() const {
  std::optional<Clock::TimePoint> next = pushes_.NextPoll();
  for (const auto& other : {fetches_.NextPoll(), intake_.NextPoll(), pause_.NextAdvance()}) {
    if (other.has_value()) {
      next = next.has_value() ? std::min(*next, *other) : other;
    }
  }
  return next;
}

// --- Events of the threads, up to the first push of each

void Synchroniser::TakeEvents(Clock::TimePoint now) {
  for (std::size_t thread = 0; thread < learner_.threads(); ++thread) {
    ThreadChannel& channel = learner_.channel(thread);
    for (const ThreadEvent* event = channel.Front();
         event != nullptr && event->kind != ThreadEvent::Kind::kPush;
         event = channel.Front()) {
      OnEvent(*event, thread, now);
      channel.Pop();
      ring_ = true;
    }
  }
  if (stop_answers_ == learner_.threads()) {
    intake_.HandBackQueued();
  }
}

void Synchroniser::OnEvent(const ThreadEvent& event, std::size_t thread, Clock::TimePoint now) {
  switch (event.kind) {
    case ThreadEvent::Kind::kPush:
      break;  // StartPushes
    case ThreadEvent::Kind::kDiscard:
      for (const LeaseResult& result : event.accumulator->results) {
        intake_.HandBack({result.lease});
      }
      store_.Recycle({.accumulator = event.accumulator, .thread = thread});
      break;
    case ThreadEvent::Kind::kApplied:
      fetcher_.OnApplied(event.generation);
      break;
    case ThreadEvent::Kind::kOutdated:
      asynchrony_.OnOutdated();
      fetcher_.StartRenewal();
      break;
    case ThreadEvent::Kind::kFetch:
      if (fetcher_.Start()) {
        PollServers(now);
      }
      break;
    case ThreadEvent::Kind::kEvaluated:
      intake_.OnEvaluated(event.result, now);
      break;
    case ThreadEvent::Kind::kHandBack:
      intake_.HandBack({event.result.lease});
      break;
    case ThreadEvent::Kind::kFlushed:
      flush_.OnFlushed(event.generation);
      break;
    case ThreadEvent::Kind::kReset:
      fetcher_.OnReset(event.generation);
      break;
    case ThreadEvent::Kind::kStopped:
      ++stop_answers_;
      break;
  }
}

// --- Pushes

absl::Status Synchroniser::StartPushes(Clock::TimePoint now) {
  while (!pause_.active() && pushes_.CanPush()) {
    std::optional<GatheredPush> push = gatherer_.Gather();
    if (!push.has_value()) {
      return absl::OkStatus();
    }
    ring_ = true;
    ADAMANT_RETURN_IF_ERROR(StartPush(*std::move(push)));
    PollServers(now);
    TakeEvents(now);
  }
  return absl::OkStatus();
}

absl::Status Synchroniser::StartPush(GatheredPush push) {
  const Accumulator& sum = push.sum();
  if (push.finite) {
    ADAMANT_FAILPOINT("push/start");
    const std::uint64_t examples = push.examples();
    const Sequence sequence = pushes_.Push({.job_examples = sum.progress.load(),
                                            .examples = examples,
                                            .correction = gatherer_.CorrectionFor(sum)});
    asynchrony_.meter().OnPush(sequence, examples);
    intake_.OnTrained(sequence, std::move(push.results));
    store_.Add(sequence, std::move(push.content));
    return absl::OkStatus();
  }
  const absl::Status status = CountRefusal(push.culprit, sum);
  for (const LeaseResult& result : push.results) {
    intake_.HandBack({result.lease});
  }
  for (const PushContent::Part& part : push.content->parts) {
    store_.Recycle(part);
  }
  return status;
}

absl::Status Synchroniser::CountRefusal(const PushedShard* culprit, const Accumulator& sum) {
  ++statistics_.pushes_refused;
  if (!fetcher_.StartRenewal()) {
    return absl::OkStatus();  // it accrued before the threads heard of the last refusal
  }
  ring_ = true;
  return refusals_.OnRefused(culprit, sum.progress.load());
}

absl::Status Synchroniser::Retire(Clock::TimePoint now) {
  for (const RetiredPush& push : pushes_.TakeRetired()) {
    retiring_.push_back(push);
  }
  store_.Release(pushes_.Release());
  if (retiring_.empty() || !learner_.fetch().Hold()) {
    return absl::OkStatus();
  }
  absl::Status status;
  for (; !retiring_.empty(); retiring_.pop_front()) {
    const RetiredPush& push = retiring_.front();
    Accumulator& sum = *store_.in_flight().at(push.sequence)->parts.front().accumulator;
    if (push.refused) {
      status.Update(CountRefusal(nullptr, sum));
    } else {
      ADAMANT_FAILPOINT("push/retire");
      fetcher_.OnRetired(push.sequence, sum);
      refusals_.OnAcknowledged();
      ++statistics_.pushes_acknowledged;
    }
    sum.live.store(false, std::memory_order_release);
    intake_.OnRetired(push.sequence, push.refused, now);
    store_.Retire(push.sequence, push.refused);
  }
  learner_.fetch().Release();
  ring_ = true;
  return status;
}

// --- Fetches

absl::Status Synchroniser::OnFetchReply(const FetchReply& reply,
                                        const ReadValues& read,
                                        Clock::TimePoint now) {
  ADAMANT_ASSIGN_OR_RETURN(const bool complete, fetcher_.OnReply(reply, read, now));
  ring_ = complete || ring_;
  return absl::OkStatus();
}

void Synchroniser::WantSnapshot(DataEpoch epoch, std::uint64_t snapshot) {
  ring_ = fetcher_.snapshot().Want(epoch, snapshot) || ring_;
}

void Synchroniser::OnEpochBegun(DataEpoch epoch) {
  ring_ = fetcher_.snapshot().OnEpochBegun(epoch) || ring_;
}

// --- What follows

std::optional<DataEpoch> Synchroniser::TakeFlushed() {
  if (!flush_.Answered() || !pushes_.Idle() || !retiring_.empty()) {
    return std::nullopt;
  }
  ADAMANT_FAILPOINT("push/flushed");
  return flush_.Take();
}

std::optional<protocol::PushesPaused> Synchroniser::TakePaused() {
  if (!pushes_.Idle() || !retiring_.empty() || !intake_.Counted()) {
    return std::nullopt;
  }
  const auto checkpoint = pause_.TakeDue();
  if (!checkpoint.has_value()) {
    return std::nullopt;
  }
  ADAMANT_FAILPOINT("push/paused");
  return protocol::PushesPaused{.checkpoint = *checkpoint, .sequence = pushes_.last_sequence()};
}

bool Synchroniser::Stopped() const {
  return stop_answers_ == learner_.threads() && pushes_.Idle() && retiring_.empty() &&
         intake_.Idle();
}

SynchroniserStatistics Synchroniser::statistics() const {
  SynchroniserStatistics statistics = statistics_;
  statistics.fetches = fetcher_.completed();
  statistics.updates_lost = pushes_.lost_updates();
  statistics.updates_resent = pushes_.resent_updates();
  statistics.retained_bytes = store_.retained_bytes();
  statistics.paused = pause_.paused();
  statistics.staleness_batches = asynchrony_.staleness_batches();
  statistics.correction = asynchrony_.guidance().correction;
  statistics.gain = asynchrony_.gain();
  statistics.exchange_every = learner_.PushEvery();
  statistics.weight_growth = fetcher_.weight_growth().ratio();
  statistics.grown_tensor = fetcher_.weight_growth().tensor();
  return statistics;
}

}  // namespace adamant::worker
