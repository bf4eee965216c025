#include "services/worker/core/exchange.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/worker/core/local_update.h"

namespace adamant::worker {
namespace {

constexpr std::uint32_t kMaxRefusalsInARow = 10;

PushTrackerOptions TrackerOptions(const UpdatePlan& plan, const ExchangeOptions& options) {
  return {.pushed = plan.pushed,
          .max_pushes = ThreadPort::kAccumulators - 2,
          .max_message_bytes = options.max_message_bytes,
          .retain = options.retain_bytes > 0};
}

// A logit may overflow, and the loss with it, while all gradients are numbers.
bool LossesAreFinite(const std::vector<LeaseResult>& results) {
  return std::ranges::all_of(
      results, [](const LeaseResult& result) { return std::isfinite(result.loss_sum); });
}

// What servers correct their rule by. Where it runs here they only add, and have no use for the
// memory: servers of before refuse one below 1, which is a worker's alone.
Correction ForServers(const UpdatePlan& plan, Correction correction) {
  const auto runs_here = [](const TensorPlan& tensor) {
    return tensor.trained && tensor.optimiser.location == OptimiserLocation::kWorker;
  };
  if (std::ranges::any_of(plan.tensors, runs_here)) {
    correction.memory = 1;
  }
  return correction;
}

std::string Decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

Exchange::Exchange(Replica& replica, const ExchangeOptions& options)
    : replica_(replica),
      routes_(replica.layout),
      pushes_(TrackerOptions(replica.plan, options), replica.layout, routes_),
      fetches_(options.max_message_bytes, replica.layout, routes_),
      store_(replica, options.retain_bytes),
      asynchrony_(AsynchronyOptionsOf(replica.options, replica.plan),
                  replica.plan,
                  replica.layout.shards().size()),
      weight_growth_(replica.plan, replica.layout.parameters()),
      scratch_(UpdatePlan::kBlock) {}

void Exchange::OnMap(const ClusterMap& map) {
  routes_.OnMap(map);
  pushes_.OnMap();
  fetches_.OnMap();
  work_.OnMap(map);
  asynchrony_.OnWorkers(map.workers);
  replica_.workers.store(map.workers, std::memory_order_release);
}

void Exchange::OnParameterServer(ServerSlot server, bool connected) {
  if (connected) {
    routes_.OnConnected(server);
  } else {
    routes_.OnDisconnected(server);
    pushes_.OnDisconnected(server);
    fetches_.OnDisconnected(server);
  }
}

void Exchange::OnDataServer(ServerSlot server, bool connected) {
  connected ? work_.OnConnected(server) : work_.OnDisconnected(server);
}

absl::Status Exchange::OnPushReply(const PushReply& reply, Clock::TimePoint now) {
  for (const ShardAck& ack : reply.acks) {
    if (ack.outcome == UpdateOutcome::kApplied) {
      statistics_.staleness.Add(ack.staleness);
    }
  }
  if (const std::optional<Sequence> sequence = pushes_.SequenceOf(reply.request)) {
    asynchrony_.meter().OnReply(*sequence, reply.acks);
    if (const double gap = asynchrony_.meter().last_gap(); gap >= 0) {
      statistics_.batches_of_others.Add(
          static_cast<std::uint64_t>(gap / static_cast<double>(replica_.options.batch_size)));
    }
  }
  return pushes_.OnReply(reply, now);
}

void Exchange::OnEpochClosed(std::uint64_t epoch) {
  auto& closed = replica_.commands.closed_epoch;
  closed.store(std::max(closed.load(), epoch), std::memory_order_release);
  work_.OnEpochClosed(epoch);
  ring_ = true;
}

void Exchange::Flush(std::uint64_t epoch) {
  OnEpochClosed(epoch);
  flush_epoch_ = std::max(flush_epoch_.value_or(0), epoch);
  flush_answers_ = 0;
  replica_.commands.flush_wanted.fetch_add(1, std::memory_order_release);
  hold_.ReleaseAny();
}

void Exchange::Stop() {
  replica_.commands.stopping.store(true, std::memory_order_release);
  hold_.ReleaseAny();
  ring_ = true;
}

absl::Status Exchange::Advance(Clock::TimePoint now) {
  hold_.Advance(now);
  Settle();
  ADAMANT_RETURN_IF_ERROR(Retire(now));
  store_.Tidy();
  TakeEvents(now);
  ADAMANT_RETURN_IF_ERROR(StartPushes(now));
  if (renewing_ && fetch_complete_) {
    FinishRenewal();
  }
  AdvanceEvaluation(now);
  pushes_.AskForFlush(store_.NearlyFull());
  asynchrony_.HoldBack(store_.NearlyFull());
  PollServers(now);
  ring_ = store_.TakeRecycled() || ring_;
  if (std::exchange(ring_, false)) {
    replica_.bell.Ring();
  }
  return absl::OkStatus();
}

void Exchange::Settle() {
  auto& settling = replica_.commands.settling;
  if (hold_.due()) {
    if (!settling.exchange(true, std::memory_order_acq_rel)) {
      replica_.slot_bell.Ring();
    }
    return;
  }
  settling.store(false, std::memory_order_release);
  work_.HandBack(std::exchange(no_slot_, {}));
}

void Exchange::PollServers(Clock::TimePoint now) {
  for (PushTracker::Message& message : pushes_.Poll(now)) {
    std::visit([&](auto& m) { outbox_.emplace_back(std::move(m)); }, message);
  }
  for (FetchMessage& message : fetches_.Poll(now)) {
    outbox_.emplace_back(std::move(message));
  }
  for (WorkTracker::Message& message : work_.Poll(now)) {
    std::visit([&](auto& m) { outbox_.emplace_back(std::move(m)); }, message);
  }
}

std::vector<Exchange::Message> Exchange::TakeMessages() { return std::exchange(outbox_, {}); }

std::optional<Clock::TimePoint> Exchange::NextAdvance() const {
  std::optional<Clock::TimePoint> next = pushes_.NextPoll();
  for (const auto& other : {fetches_.NextPoll(), work_.NextPoll(), hold_.NextAdvance()}) {
    if (other.has_value()) {
      next = next.has_value() ? std::min(*next, *other) : other;
    }
  }
  return next;
}

// --- Events of the threads, up to the first push of each

void Exchange::TakeEvents(Clock::TimePoint now) {
  for (std::size_t thread = 0; thread < replica_.ports.size(); ++thread) {
    auto& events = replica_.ports[thread]->events;
    for (const ThreadEvent* event = events.Front();
         event != nullptr && event->kind != ThreadEvent::Kind::kPush;
         event = events.Front()) {
      OnEvent(*event, thread, now);
      events.Pop();
      ring_ = true;
    }
  }
  if (stop_answers_ == replica_.ports.size()) {
    while (Batch* const batch = replica_.batches.Take()) {
      work_.HandBack({batch->lease});
      replica_.batches.Recycle(batch);
      replica_.slot_bell.Ring();
    }
  }
}

void Exchange::OnEvent(const ThreadEvent& event, std::size_t thread, Clock::TimePoint now) {
  const Commands& commands = replica_.commands;
  switch (event.kind) {
    case ThreadEvent::Kind::kPush:
      break;  // StartPushes
    case ThreadEvent::Kind::kDiscard:
      for (const LeaseResult& result : event.accumulator->results) {
        work_.HandBack({result.lease});
      }
      store_.Recycle({.accumulator = event.accumulator, .thread = thread});
      break;
    case ThreadEvent::Kind::kApplied:
      if (!renewing_ && event.generation == fetch_) {
        FinishFetch();
      }
      break;
    case ThreadEvent::Kind::kOutdated:
      asynchrony_.OnOutdated();
      if (!renewing_) {
        StartRenewal();
      }
      break;
    case ThreadEvent::Kind::kFetch:
      StartFetch(now);
      break;
    case ThreadEvent::Kind::kEvaluated:
      work_.Evaluated(event.result, now);
      break;
    case ThreadEvent::Kind::kHandBack:
      work_.HandBack({event.result.lease});
      break;
    case ThreadEvent::Kind::kFlushed:
      flush_answers_ += event.generation == commands.flush_wanted.load() ? 1 : 0;
      break;
    case ThreadEvent::Kind::kReset:
      reset_answers_ += event.generation == commands.reset_wanted.load() ? 1 : 0;
      if (renewing_ && reset_answers_ == replica_.ports.size()) {
        fetches_.Drop(fetch_);
        replica_.fetch.Abandon();
        fetch_complete_ = false;
        fetch_ = fetches_.Fetch(0);
      }
      break;
    case ThreadEvent::Kind::kStopped:
      ++stop_answers_;
      break;
  }
}

// --- Pushes

absl::Status Exchange::StartPushes(Clock::TimePoint now) {
  while (!hold_.active() && pushes_.CanPush()) {
    ContentPtr content = GatherPush();
    if (content == nullptr) {
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(StartPush(std::move(content)));
    PollServers(now);
    TakeEvents(now);
  }
  return absl::OkStatus();
}

// Sums what threads have handed over, one accumulator of each; null when there is nothing. While a
// thread applies a fetch no sums may move, and one thread's is all that is taken.
Exchange::ContentPtr Exchange::GatherPush() {
  const std::size_t threads = replica_.ports.size();
  std::vector<PushContent::Part> parts;
  for (std::size_t i = 0; i < threads && parts.size() < replica_.plan.max_summed; ++i) {
    const std::size_t thread = (next_thread_ + i) % threads;
    const ThreadEvent* const event = replica_.ports[thread]->events.Front();
    if (event != nullptr && event->kind == ThreadEvent::Kind::kPush) {
      parts.push_back({.accumulator = event->accumulator, .thread = thread});
    }
  }
  if (parts.empty()) {
    return nullptr;
  }
  if (parts.size() > 1 && !replica_.fetch.Hold()) {
    parts.resize(1);
  }
  const std::size_t next = parts.back().thread + 1;
  next_thread_ = next < threads ? next : 0;
  Accumulator& sum = *parts.front().accumulator;
  for (const PushContent::Part& part : parts) {
    replica_.ports[part.thread]->events.Pop();
    if (part.accumulator != &sum) {
      Sum(replica_.plan, *part.accumulator, sum);
      sum.progress.store(std::max(sum.progress.load(), part.accumulator->progress.load()));
      part.accumulator->live.store(false, std::memory_order_release);
    }
  }
  replica_.fetch.Release();
  ring_ = true;
  auto content = std::make_unique<PushContent>();
  content->parts = std::move(parts);
  return content;
}

// What was computed before this process stood still for long has become worth less.
void Exchange::Freshen(PushContent& content) const {
  const float freshness =
      asynchrony_.FreshnessAfter(content.parts.front().accumulator->stood_still);
  if (freshness == 1) {
    return;
  }
  Accumulator& sum = *content.parts.front().accumulator;
  for (const TensorPlan& tensor : replica_.plan.tensors) {
    if (tensor.trained && tensor.optimiser.location == OptimiserLocation::kWorker) {
      Scale(freshness, sum.values.span().subspan(tensor.offset, tensor.size));
    } else {
      sum.correction.rate *= freshness;
      break;  // all rules run on one side
    }
  }
}

absl::Status Exchange::StartPush(ContentPtr content) {
  Freshen(*content);
  std::vector<Accumulator*> accumulators;
  std::vector<LeaseResult> results;
  for (const PushContent::Part& part : content->parts) {
    accumulators.push_back(part.accumulator);
    results.insert(
        results.end(), part.accumulator->results.begin(), part.accumulator->results.end());
  }
  const PushedShard* const culprit = FindNotFinite(replica_.plan, replica_.layout, accumulators);
  if (culprit == nullptr && LossesAreFinite(results)) {
    std::uint64_t examples = 0;
    for (const LeaseResult& result : results) {
      examples += result.examples;
    }
    ADAMANT_FAILPOINT("push/start");
    const Sequence sequence =
        pushes_.Push({.progress = accumulators.front()->progress.load(),
                      .examples = examples,
                      .correction = ForServers(replica_.plan, accumulators.front()->correction)});
    asynchrony_.meter().OnPush(sequence, examples);
    work_.Trained(sequence, std::move(results));
    store_.Add(sequence, std::move(content));
    return absl::OkStatus();
  }
  const absl::Status status = CountRefusal(culprit, *accumulators.front());
  for (const LeaseResult& result : results) {
    work_.HandBack({result.lease});
  }
  for (const PushContent::Part& part : content->parts) {
    store_.Recycle(part);
  }
  return status;
}

absl::Status Exchange::CountRefusal(const PushedShard* culprit, const Accumulator& accumulator) {
  ++statistics_.pushes_refused;
  if (renewing_) {
    return absl::OkStatus();  // it accrued before the threads heard of the last refusal
  }
  StartRenewal();
  if (++refusals_in_a_row_ < kMaxRefusalsInARow) {
    return absl::OkStatus();
  }
  diverged_ = true;
  const std::uint32_t tensor =
      culprit == nullptr ? 0 : replica_.layout.shards()[culprit->shard].tensor;
  const double rate = replica_.plan.tensors[tensor].optimiser.RateAt(accumulator.progress.load());
  const std::string where =
      culprit == nullptr ? "" : " in layer " + replica_.layout.parameters()[tensor].layer;
  return absl::InvalidArgumentError("training diverged: " + std::to_string(kMaxRefusalsInARow) +
                                    " updates in a row held NaN or infinity, the last" + where +
                                    " at learning rate " + Decimal(rate));
}

absl::Status Exchange::Retire(Clock::TimePoint now) {
  for (const RetiredPush& push : pushes_.TakeRetired()) {
    retiring_.push_back(push);
  }
  store_.Release(pushes_.Release());
  if (retiring_.empty() || !replica_.fetch.Hold()) {
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
      FoldIntoFetch(push.sequence, sum);
      refusals_in_a_row_ = 0;
      ++statistics_.pushes_acknowledged;
    }
    sum.live.store(false, std::memory_order_release);
    work_.Retired(push.sequence, push.refused, now);
    store_.Retire(push.sequence, push.refused);
  }
  replica_.fetch.Release();
  ring_ = true;
  return status;
}

// --- What follows

std::optional<std::uint64_t> Exchange::TakeFlushed() {
  if (!flush_epoch_.has_value() || flush_answers_ < replica_.ports.size() || !pushes_.Idle() ||
      !retiring_.empty()) {
    return std::nullopt;
  }
  ADAMANT_FAILPOINT("push/flushed");
  return std::exchange(flush_epoch_, std::nullopt);
}

std::optional<HeldPushes> Exchange::TakeHeld() {
  if (!pushes_.Idle() || !retiring_.empty() || !work_.Counted()) {
    return std::nullopt;
  }
  const auto checkpoint = hold_.TakeDue();
  if (!checkpoint.has_value()) {
    return std::nullopt;
  }
  ADAMANT_FAILPOINT("push/held");
  return HeldPushes{.checkpoint = *checkpoint, .sequence = pushes_.last_sequence()};
}

bool Exchange::Stopped() const {
  return stop_answers_ == replica_.ports.size() && pushes_.Idle() && retiring_.empty() &&
         work_.Idle();
}

ExchangeStatistics Exchange::statistics() const {
  ExchangeStatistics statistics = statistics_;
  statistics.updates_lost = pushes_.lost_updates();
  statistics.updates_resent = pushes_.resent_updates();
  statistics.retained_bytes = store_.retained_bytes();
  statistics.held = hold_.held();
  statistics.gap_batches = asynchrony_.gap_batches();
  statistics.correction = asynchrony_.guidance().correction;
  statistics.gain = asynchrony_.gain();
  statistics.exchange_every = replica_.PushEvery();
  statistics.weight_growth = weight_growth_.ratio();
  statistics.grown_tensor = weight_growth_.tensor();
  return statistics;
}

}  // namespace adamant::worker
