#include "services/data_server/rpc/scheduler_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/log.h"
#include "services/data_server/rpc/message_codec.h"

namespace adamant::data_server {
namespace {

constexpr std::size_t kMaxQueuedInputs = 4096;

}  // namespace

SchedulerLoop::SchedulerLoop(Options options,
                             ControllerHandlers controller,
                             BatchPipeline& pipeline,
                             const DataMetrics& metrics)
    : options_(std::move(options)),
      layout_(options_.scheduler.train_examples,
              options_.scheduler.parts,
              options_.scheduler.batch_size),
      validation_layout_(options_.scheduler.validation_examples, 1, options_.scheduler.batch_size),
      controller_(std::move(controller)),
      pipeline_(pipeline),
      metrics_(metrics),
      scheduler_(options_.scheduler),
      records_({.job = options_.job, .security = options_.security},
               {.on_answer = [this](Input answer) { Post(std::move(answer)); },
                .on_failure = [this](const absl::Status& status) { controller_.fail(status); }},
               metrics),
      thread_([this] { Run(); }) {}

SchedulerLoop::~SchedulerLoop() { Stop(); }

void SchedulerLoop::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) {
    thread_.join();
    for (const auto& [worker, stream] : streams_) {
      stream->Cancel();
    }
  }
}

void SchedulerLoop::Post(Input input, std::shared_ptr<WorkStream> stream) {
  MutexLock lock(mutex_);
  while (queue_.size() >= kMaxQueuedInputs && !stopped_) {
    changed_.Wait(mutex_);
  }
  if (stopped_) {
    if (stream != nullptr) {
      stream->Cancel();
    }
    return;
  }
  queue_.push_back({std::move(input), std::move(stream)});
  changed_.NotifyAll();
}

void SchedulerLoop::SetMembership(const protocol::Membership& view) {
  records_.SetMap(BucketAddressesOf(view));
  Post(WorkViewOf(view));
}

protocol::DataServerProgress SchedulerLoop::progress() const {
  MutexLock lock(scheduler_mutex_);
  return scheduler_.progress();
}

// Waits for the next input; a Tick when it is time for one. False when stopped.
bool SchedulerLoop::Next(Event& event) {
  MutexLock lock(mutex_);
  while (!stopped_) {
    const Clock::TimePoint now = clock_.Now();
    if (wake_ && *wake_ <= now) {
      event = {Tick{}, nullptr};
      return true;
    }
    if (!queue_.empty()) {
      event = std::move(queue_.front());
      queue_.pop_front();
      changed_.NotifyAll();
      return true;
    }
    if (wake_) {
      changed_.WaitFor(mutex_, *wake_ - now);
    } else {
      changed_.Wait(mutex_);
    }
  }
  return false;
}

void SchedulerLoop::Run() {
  Event event;
  while (Next(event)) {
    turns_.fetch_add(1, std::memory_order_relaxed);
    if (Register(event)) {
      Handle(event.input);
    }
    event = {};
    turns_.fetch_add(1, std::memory_order_relaxed);
  }
}

// Notes which stream a worker has; false for the end of a stream that was replaced.
bool SchedulerLoop::Register(const Event& event) {
  if (const auto* hello = std::get_if<Hello>(&event.input)) {
    std::shared_ptr<WorkStream>& stream = streams_[hello->worker];
    if (stream != nullptr) {
      stream->Cancel();
    }
    stream = event.stream;
  } else if (const auto* gone = std::get_if<WorkerDisconnected>(&event.input)) {
    const auto stream = streams_.find(gone->worker);
    if (stream == streams_.end() || stream->second != event.stream) {
      return false;
    }
    streams_.erase(stream);
  }
  metrics_.workers.Set(static_cast<double>(streams_.size()));
  return true;
}

void SchedulerLoop::Handle(const Input& input) {
  std::vector<Output> outputs;
  std::vector<BatchId> upcoming;
  std::optional<Clock::TimePoint> wake;
  {
    MutexLock lock(scheduler_mutex_);
    outputs = scheduler_.Handle(input, clock_.Now());
    wake = scheduler_.NextWake();
    if (pipeline_.Hungry()) {
      upcoming = scheduler_.Upcoming(pipeline_.depth());
    }
  }
  if (!upcoming.empty()) {
    pipeline_.Expect(upcoming);
  }
  for (const Output& output : outputs) {
    std::visit([this](const auto& message) { Send(message); }, output);
  }
  MutexLock lock(mutex_);
  wake_ = wake;
}

WorkStream* SchedulerLoop::Find(WorkerId worker) {
  const auto stream = streams_.find(worker);
  return stream == streams_.end() ? nullptr : stream->second.get();
}

void SchedulerLoop::Send(const HelloAnswer& message) {
  if (WorkStream* stream = Find(message.to)) {
    stream->AnswerHello(message.refused, options_.normalisation);
    LogInfo(message.refused.empty() ? "worker connected" : "worker refused",
            {{"slot", message.to.slot},
             {"incarnation", message.to.incarnation},
             {"reason", message.refused}});
  }
}

void SchedulerLoop::Send(const Dispatch& dispatch) {
  const BatchId& batch = dispatch.lease.batch;
  if (batch.kind == WorkKind::kTrain) {
    const double examples = layout_.BatchExamples(batch.part, batch.index);
    metrics_.dispatched_train_examples.Increment(examples);
    metrics_.retrained_examples.Increment(dispatch.again ? examples : 0);
  } else {
    metrics_.dispatched_evaluate_examples.Increment(
        validation_layout_.BatchExamples(0, batch.index));
  }
  if (WorkStream* stream = Find(dispatch.to)) {
    stream->Send(dispatch);
  }
}

void SchedulerLoop::Send(const Acknowledged& message) {
  for (std::uint32_t i = 0; i < message.leases.size(); ++i) {
    const BatchId& batch = message.leases[i].batch;
    const bool duplicate = std::find(message.duplicates.begin(), message.duplicates.end(), i) !=
                           message.duplicates.end();
    if (duplicate) {
      metrics_.duplicate_results.Increment();
    } else if (batch.kind == WorkKind::kTrain) {
      metrics_.counted_examples.Increment(layout_.BatchExamples(batch.part, batch.index));
    }
  }
  if (WorkStream* stream = Find(message.to)) {
    stream->Send(ToProto(message).SerializeAsString());
  }
}

void SchedulerLoop::Send(const Drained& message) {
  if (WorkStream* stream = Find(message.to)) {
    stream->Send(ToProto(message).SerializeAsString());
  }
}

void SchedulerLoop::Send(const EpochClosed& message) {
  if (WorkStream* stream = Find(message.to)) {
    stream->Send(ToProto(message).SerializeAsString());
  }
}

void SchedulerLoop::Send(const Disconnect& message) {
  if (WorkStream* stream = Find(message.to)) {
    stream->Cancel();
  }
}

void SchedulerLoop::Send(const EpochEnded& message) { controller_.send(message); }
void SchedulerLoop::Send(const PartClosed& message) { controller_.send(message); }
void SchedulerLoop::Send(const Evaluated& message) { controller_.send(message); }

void SchedulerLoop::Send(const Failed& message) {
  controller_.fail(absl::FailedPreconditionError(message.reason));
}

void SchedulerLoop::Send(const OpenedAlone& message) {
  LogWarning("no controller for long: opened the next epoch without it",
             {{"epoch", message.epoch}});
}

void SchedulerLoop::Send(const ReadRecord& request) { records_.Submit(request); }
void SchedulerLoop::Send(const WriteRecord& request) { records_.Submit(request); }

}  // namespace adamant::data_server
