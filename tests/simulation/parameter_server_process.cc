#include "tests/simulation/parameter_server_process.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "tests/simulation/convert.h"

namespace adamant::simulation {
namespace {

using parameter_server::BucketTable;

/// Between the time that a flush is due and the time that it is done.
constexpr auto kDiskTime = milliseconds(20);

/// How much longer than the flush interval an update may be only in memory.
constexpr auto kSlack = milliseconds(50);

/// A full disk is tried again after this time.
constexpr auto kDiskRetry = seconds(1);

constexpr char kLedgerPrefix[] = "ledger/";

}  // namespace

ParameterServerProcess::ParameterServerProcess(World& world,
                                               const ProcessStart& start,
                                               std::function<void(std::string)> exited,
                                               Disk& disk)
    : MemberProcess(world, start, std::move(exited)), disk_(disk) {}

absl::Status ParameterServerProcess::Start(const controller::Welcome& welcome) {
  if (std::exchange(disk_.locked, true)) {
    return absl::UnavailableError("another process has the data folder");
  }
  has_disk_ = true;
  hindered_ += std::max(Clock::Duration(0), disk_.full_until - Now()) + kDiskRetry;
  parameter_server::ServerOptions options =
      world_.setup.ServerOptions(start().id.slot, welcome.job_uid);
  options.flush_due_changed = [this] { PlanStorage(Clock::Duration(0)); };
  core_.emplace(std::move(options), disk_, world_.scheduler);
  open_ = true;
  return absl::OkStatus();
}

void ParameterServerProcess::OnControl(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    auto buckets = BucketsOf(*view);
    if (world_.Has(Mutation::kInitialisesAgain) && prepared_.empty() && incarnation() > 1) {
      for (parameter_server::BucketRecord& bucket : buckets) {
        bucket.created = false;
      }
    }
    core_->SetMap(buckets);
    prepare_ = true;
    PlanStorage(world_.scheduler.Random(milliseconds(1), kDiskTime));
  } else if (const auto* take = std::get_if<controller::TakeSnapshot>(&message)) {
    snapshots_.push_back(*take);
    PlanStorage(world_.scheduler.Random(milliseconds(1), kDiskTime));
  }
}

controller::Heartbeat ParameterServerProcess::MakeHeartbeat() {
  return {.progress =
              controller::ParameterServerProgress{.updates_applied = core_->updates_applied(),
                                                  .dirty_bytes = core_->dirty().bytes(),
                                                  .flushes = core_->flusher().totals().flushes,
                                                  .alarm = core_->flusher().alarm()}};
}

// --- Traffic

void ParameterServerProcess::OnServiceMessage(StreamId stream,
                                              StreamKind /*kind*/,
                                              Message& message) {
  if (!open_) {
    return world_.network.Close(stream, *this);
  }
  if (const auto* hello = std::get_if<ExchangeHello>(&message)) {
    OnHello(stream, *hello);
  } else if (const auto* push = std::get_if<std::shared_ptr<PushFrame>>(&message)) {
    OnPush(stream, **push);
  } else if (const auto* fetch = std::get_if<worker::FetchMessage>(&message)) {
    OnFetch(stream, *fetch);
  } else if (const auto* get = std::get_if<GetRecord>(&message)) {
    Send(stream, OnGet(*get));
  } else if (const auto* put = std::get_if<PutRecord>(&message)) {
    Send(stream, OnPut(*put));
  }
}

void ParameterServerProcess::OnServiceEnded(StreamId stream, StreamKind /*kind*/) {
  greeted_.erase(stream);
}

void ParameterServerProcess::OnHello(StreamId stream, const ExchangeHello& hello) {
  std::optional<Writer> writer = hello.writer;
  if (writer.has_value() && world_.Has(Mutation::kNoFencing)) {
    writer->incarnation = 1;
  }
  if (writer.has_value() && !core_->Admit(*writer).ok()) {
    Send(stream, ExchangeHelloReply{.refused = true});
    return world_.network.Close(stream, *this);
  }
  greeted_[stream] = writer;
  Send(stream, ExchangeHelloReply{});
}

void ParameterServerProcess::OnPush(StreamId stream, const PushFrame& frame) {
  const auto writer = greeted_.find(stream);
  if (writer == greeted_.end() || !writer->second.has_value()) {
    return;
  }
  std::deque<std::vector<float>> rows;
  parameter_server::Push push = ToParameterServer(*writer->second, frame, rows);
  if (world_.Has(Mutation::kNoDeduplication)) {
    Relabel(push);
  }
  const std::vector<parameter_server::ShardAck> acks = core_->Apply(push);
  world_.updates.Applied(push.writer, frame, acks);
  if (std::ranges::any_of(acks, [](const parameter_server::ShardAck& ack) {
        return ack.outcome == parameter_server::PushOutcome::kApplied;
      })) {
    world_.job.Applied(push.writer.slot, push.writer.incarnation);
  }
  Send(stream, ToWorker(frame.header.request, acks));
}

// Whatever comes is the next one.
void ParameterServerProcess::Relabel(parameter_server::Push& push) {
  for (parameter_server::ShardUpdate& update : push.updates) {
    update.sequence = static_cast<std::uint64_t>(Now().time_since_epoch().count()) + ++relabelled_;
    update.after_loss = true;
  }
}

void ParameterServerProcess::OnFetch(StreamId stream, const worker::FetchMessage& fetch) {
  const auto greeted = greeted_.find(stream);
  if (greeted == greeted_.end()) {
    return;
  }
  const Writer* const asking = greeted->second.has_value() ? &*greeted->second : nullptr;
  const auto values = core_->Fetch(asking, fetch.shards, fetch.snapshot);
  if (!values.ok()) {
    return world_.network.Close(stream, *this);
  }
  Send(stream, FetchAnswer{.reply = ToWorker(fetch.request, *values), .values = *values});
}

RecordAnswer ParameterServerProcess::OnGet(const GetRecord& get) {
  if (core_->AccessOfRecord(get.key) != BucketTable::Access::kReady) {
    return {};
  }
  parameter_server::Record record = core_->records().Get(get.key);
  return {.outcome = RecordAnswer::Outcome::kDone,
          .version = record.version,
          .value = std::move(record.value)};
}

RecordAnswer ParameterServerProcess::OnPut(const PutRecord& put) {
  if (core_->AccessOfRecord(put.key) != BucketTable::Access::kReady) {
    return {};
  }
  if (world_.Has(Mutation::kLedgerNotStored) && world_.scheduler.Chance(0.1)) {
    return {.outcome = RecordAnswer::Outcome::kDone, .version = put.expected_version + 1};
  }
  const auto result = core_->records().Put(put.key, put.expected_version, put.value);
  if (absl::IsDataLoss(result.status())) {
    storage_failed_ = true;
    Fail(result.status());
  }
  if (!result.ok()) {
    return {};
  }
  if (result->stored) {
    const std::string part = put.key.substr(std::size(kLedgerPrefix) - 1);
    world_.work.LedgerStored(static_cast<std::uint32_t>(std::stoul(part)), put.value);
  }
  return {
      .outcome = result->stored ? RecordAnswer::Outcome::kDone : RecordAnswer::Outcome::kConflict,
      .version = result->version};
}

// --- The disk

void ParameterServerProcess::PlanStorage(Clock::Duration delay) {
  const bool for_flush = delay.count() == 0;
  if (for_flush && world_.Has(Mutation::kNeverFlushes)) {
    return;
  }
  const Clock::TimePoint time =
      for_flush ? std::max(Now(), core_->flusher().DueAt()) : Now() + delay;
  if (storage_failed_ || !open_ || time == Clock::TimePoint::max() ||
      (storage_at_.has_value() && *storage_at_ <= time)) {
    return;
  }
  storage_at_ = time;
  world_.scheduler.At(time, life, [this, time] {
    if (storage_at_ == time) {
      DoStorage();
    }
  });
}

void ParameterServerProcess::DoStorage() {
  storage_at_.reset();
  if (storage_failed_ || !open_) {
    return;
  }
  if (const absl::Status status = DoDue(); !status.ok()) {
    storage_failed_ = true;
    return Fail(status);
  }
  PlanStorage(Clock::Duration(0));
}

absl::Status ParameterServerProcess::DoDue() {
  if (std::exchange(prepare_, false)) {
    ADAMANT_RETURN_IF_ERROR(Prepare());
  }
  for (const controller::TakeSnapshot& take : std::exchange(snapshots_, {})) {
    ADAMANT_RETURN_IF_ERROR(TakeSnapshot(take));
  }
  return core_->flusher().DueAt() <= Now() ? Flush() : absl::OkStatus();
}

absl::Status ParameterServerProcess::Prepare() {
  ADAMANT_RETURN_IF_ERROR(core_->Prepare());
  controller::BucketsReady report;
  for (const parameter_server::BucketReport& bucket : core_->Reports()) {
    report.buckets.push_back({.bucket = bucket.bucket,
                              .epoch = bucket.epoch,
                              .lost = bucket.lost,
                              .detail = bucket.detail});
    if (!bucket.lost && prepared_.insert(bucket.bucket).second) {
      world_.scheduler.Record(life->name, "has prepared bucket", bucket.bucket);
      Observe(bucket.bucket);
    }
  }
  if (!report.buckets.empty()) {
    Tell(report);
  }
  return absl::OkStatus();
}

// Shows the checker what this process begins with.
void ParameterServerProcess::Observe(BucketId bucket) {
  for (const Shard& shard : core_->layout().shards()) {
    if (shard.bucket != bucket) {
      continue;
    }
    if (const auto stored = disk_.ReadShard(core_->job_uid(), shard.id); stored.ok()) {
      world_.updates.Loaded(shard.id, *stored);
    }
  }
}

absl::Status ParameterServerProcess::TakeSnapshot(const controller::TakeSnapshot& take) {
  const absl::Status status = core_->TakeSnapshot(take.snapshot, take.keep_from, take.keep);
  if (absl::IsDataLoss(status)) {
    return status;
  }
  if (status.ok()) {
    world_.updates.SnapshotTaken(start().id.slot, take.snapshot);
  }
  Tell(controller::SnapshotTaken{
      .snapshot = take.snapshot, .ok = status.ok(), .error = std::string(status.message())});
  return absl::OkStatus();
}

absl::Status ParameterServerProcess::Flush() {
  if (world_.Has(Mutation::kNeverFlushes)) {
    return absl::OkStatus();
  }
  const std::uint64_t before = core_->flusher().totals().flushes;
  ADAMANT_RETURN_IF_ERROR(core_->flusher().Flush());
  if (core_->flusher().totals().flushes > before) {
    world_.scheduler.Record(life->name, "has flushed");
    world_.updates.Flushed(start().id.slot);
  }
  return absl::OkStatus();
}

// --- The end

void ParameterServerProcess::Stop() {
  open_ = false;
  if (!storage_failed_) {
    const absl::Status status = Flush();
    storage_failed_ = !status.ok();
  }
  Leave();
}

void ParameterServerProcess::OnKilled() {
  if (!has_disk_) {
    return;
  }
  disk_.store().Crash(world_.scheduler.rng().Below(disk_.store().unflushed() + 1));
  disk_.locked = false;
  world_.updates.Ended(start().id.slot, world_.setup.flush.interval + kSlack + hindered_);
}

}  // namespace adamant::simulation
