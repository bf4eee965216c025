#include "tests/simulation/job/processes/data_server_process.h"

#include <utility>
#include <vector>

namespace adamant::simulation {
namespace {

std::string LedgerKey(std::uint32_t part) { return "ledger/" + std::to_string(part); }

}  // namespace

DataServerProcess::DataServerProcess(World& world,
                                     const ProcessStart& start,
                                     std::function<void(std::string)> exited)
    : MemberProcess(world, start, std::move(exited)), records_(world, *this) {}

absl::Status DataServerProcess::Start(const controller::Welcome& welcome) {
  data_server::BatchSchedulerOptions options =
      world_.setup.SchedulerOptions(start().id.slot, welcome.incarnation);
  if (world_.Has(Mutation::kLeasesNeverEnd)) {
    options.lease_time = std::chrono::hours(1000);
  }
  if (world_.Has(Mutation::kOneEpochTooMany)) {
    ++options.epochs;
  }
  scheduler_.emplace(options);
  return absl::OkStatus();
}

void DataServerProcess::OnControl(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    OnMembership(*view);
  } else if (const auto* open = std::get_if<controller::OpenEpoch>(&message)) {
    Handle(*open);
  } else if (const auto* close = std::get_if<controller::CloseEpoch>(&message)) {
    Handle(*close);
  } else if (const auto* evaluate = std::get_if<controller::Evaluate>(&message)) {
    snapshot_ = evaluate->snapshot;
    Handle(*evaluate);
  }
}

void DataServerProcess::OnMembership(const controller::Membership& view) {
  records_.OnMembership(view);
  data_server::WorkView work = data_server::WorkViewOf(view);
  std::ranges::transform(
      work.workers, work.workers.begin(), [this](auto worker) { return Disguise(worker); });
  if (world_.Has(Mutation::kLeasesNeverEnd)) {
    ever_seen_.insert(work.workers.begin(), work.workers.end());
    work.workers.assign(ever_seen_.begin(), ever_seen_.end());
  }
  Handle(work);
}

// A worker whose leases never end looks like the one that had them before.
WorkerId DataServerProcess::Disguise(WorkerId worker) const {
  return world_.Has(Mutation::kLeasesNeverEnd) ? WorkerId{worker.slot, 1} : worker;
}

controller::Heartbeat DataServerProcess::MakeHeartbeat() {
  controller::DataServerProgress progress = scheduler_->progress();
  if (world_.Has(Mutation::kForgetsUnattended)) {
    progress.unattended.clear();
  }
  return {.progress = std::move(progress)};
}

// --- Streams

void DataServerProcess::OnServiceMessage(StreamId stream, StreamKind /*kind*/, Message& message) {
  if (const auto* answer = std::get_if<RecordAnswer>(&message)) {
    return records_.OnAnswer(stream, *answer);
  }
  if (const auto* hello = std::get_if<data_server::Hello>(&message)) {
    return OnHello(stream, *hello);
  }
  const auto worker = workers_.find(stream);
  if (worker == workers_.end()) {
    return;
  }
  if (auto* acknowledge = std::get_if<data_server::Acknowledge>(&message)) {
    acknowledge->worker = worker->second;
    Handle(*acknowledge);
  } else if (auto* hand_back = std::get_if<data_server::HandBack>(&message)) {
    hand_back->worker = worker->second;
    Handle(*hand_back);
  } else if (auto* alive = std::get_if<data_server::KeepAlive>(&message)) {
    alive->worker = worker->second;
    Handle(*alive);
  }
}

void DataServerProcess::OnHello(StreamId stream, data_server::Hello hello) {
  hello.worker = Disguise(hello.worker);
  if (const auto old = streams_.find(hello.worker); old != streams_.end()) {
    workers_.erase(old->second);
    world_.network.Close(old->second, *this);
  }
  streams_[hello.worker] = stream;
  workers_[stream] = hello.worker;
  Handle(hello);
}

void DataServerProcess::OnServiceEnded(StreamId stream, StreamKind kind) {
  if (kind == StreamKind::kRecord) {
    return records_.OnEnded(stream);
  }
  if (auto node = workers_.extract(stream); !node.empty()) {
    streams_.erase(node.mapped());
    Handle(data_server::WorkerDisconnected{node.mapped()});
  }
}

void DataServerProcess::SendTo(WorkerId worker, Message message) {
  if (const auto stream = streams_.find(worker); stream != streams_.end()) {
    Send(stream->second, std::move(message));
  }
}

// --- The core

void DataServerProcess::Handle(const data_server::Input& input) {
  for (const data_server::Output& output : scheduler_->Handle(input, clock_.Now())) {
    std::visit([this](const auto& each) { Do(each); }, output);
  }
  PlanWake();
}

void DataServerProcess::PlanWake() {
  const std::optional<Clock::TimePoint> next = scheduler_->NextWake();
  if (!next.has_value() || (wake_at_.has_value() && *wake_at_ <= *next)) {
    return;
  }
  wake_at_ = next;
  world_.scheduler.At(clock_.ToWorld(*next), life, [this, time = *next] {
    if (wake_at_ == time) {
      wake_at_.reset();
      Handle(data_server::Tick{});
    }
  });
}

void DataServerProcess::Do(const data_server::HelloAnswer& answer) {
  SendTo(answer.to, answer);
  if (!answer.refused.empty()) {
    Do(data_server::Disconnect{answer.to});
  }
}

void DataServerProcess::Do(const data_server::Dispatch& dispatch) {
  world_.work.Dispatched(dispatch);
  SendTo(dispatch.to, dispatch);
}

void DataServerProcess::Do(const data_server::Acknowledged& answer) {
  world_.work.Answered(Self(), attempt(), answer, snapshot_);
  SendTo(answer.to, answer);
}

void DataServerProcess::Do(const data_server::Disconnect& disconnect) {
  if (auto node = streams_.extract(disconnect.to); !node.empty()) {
    workers_.erase(node.mapped());
    world_.network.Close(node.mapped(), *this);
  }
}

void DataServerProcess::Do(const data_server::EpochEnded& ended) {
  Tell(controller::EpochEnded{ended.epoch});
}

void DataServerProcess::Do(const data_server::PartClosed& closed) {
  Tell(controller::PartClosed{.epoch = closed.epoch,
                              .part = closed.part,
                              .counted_examples = closed.counted_examples,
                              .left_examples = closed.left_examples,
                              .retrained_examples = closed.retrained_examples});
}

void DataServerProcess::Do(const data_server::Evaluated& evaluated) {
  world_.work.Evaluated(Self(), evaluated);
  Tell(controller::Evaluated{.epoch = evaluated.epoch,
                             .snapshot = evaluated.snapshot,
                             .examples = evaluated.examples,
                             .correct = evaluated.correct,
                             .loss_sum = evaluated.loss_sum,
                             .most_frequent = evaluated.most_frequent});
}

void DataServerProcess::Do(const data_server::ReadRecord& read) {
  const bool ignore = world_.Has(Mutation::kOwnerIgnoresRecord) && incarnation() > 1 &&
                      begun_parts_.insert(read.part).second;
  const std::string key = LedgerKey(read.part);
  records_.Call(key, GetRecord{key}, [this, read, ignore](const RecordAnswer& answer) {
    data_server::RecordRead result{.request = read.request, .record = std::nullopt};
    if (answer.version != 0) {
      result.record = {.version = answer.version, .value = answer.value};
    }
    if (ignore && result.record.has_value()) {
      data_server::Ledger empty;
      empty.counted.resize(data_server::ParseLedger(answer.value)->counted.size());
      result.record->value = data_server::SerializeLedger(empty);
    }
    Handle(result);
  });
}

void DataServerProcess::Do(const data_server::WriteRecord& write) {
  const std::string key = LedgerKey(write.part);
  records_.Call(key,
                PutRecord{key, write.expected_version, write.value},
                [this, request = write.request](const RecordAnswer& answer) {
                  Handle(data_server::RecordWritten{
                      .request = request,
                      .conflict = answer.outcome == RecordAnswer::Outcome::kConflict,
                      .version = answer.version});
                });
}

}  // namespace adamant::simulation
