#include "services/data_server/rpc/data_server_service.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/busy_meter.h"
#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/durations.h"
#include "services/common/job/job.h"
#include "services/common/job/warm_start_of.h"
#include "services/common/service/member_generations.h"
#include "services/data_server/core/batches/batch_builder.h"
#include "services/data_server/rpc/batch_pipeline.h"
#include "services/data_server/rpc/check_files.h"
#include "services/data_server/rpc/data_metrics.h"
#include "services/data_server/rpc/data_source.h"
#include "services/data_server/rpc/scheduler_loop.h"
#include "services/data_server/rpc/serve_work.h"

namespace adamant::data_server {
namespace {

constexpr std::uint32_t kMaxBatchesOfPart = 8'000'000;  // their bitmap fits a record of 1 MiB
constexpr unsigned kMaxPipelineThreads = 4;

DataShape ShapeOf(const v1::TrainingJob& job) {
  const model::Net net = job::NetOf(job);
  return {.image = {.channels = static_cast<std::uint32_t>(net.input[0]),
                    .height = static_cast<std::uint32_t>(net.input[1]),
                    .width = static_cast<std::uint32_t>(net.input[2])},
          .classes = static_cast<std::uint32_t>(net.classes)};
}

TransformOptions TransformsOf(const v1::Transformations& transformations) {
  return {.translate_pixels = transformations.translate(),
          .rotate_degrees = transformations.rotate(),
          .scale = transformations.scale(),
          .flip = transformations.flip()};
}

Normalisation NormalisationOf(const v1::Normalise& normalise, std::uint32_t channels) {
  // The manifest speaks of pixels from 0 to 1, the wire of bytes.
  return {
      .mean = std::vector<float>(channels, static_cast<float>(255 * normalise.mean())),
      .deviation = std::vector<float>(channels, static_cast<float>(255 * normalise.deviation()))};
}

BatchSchedulerOptions SchedulerOptionsOf(const v1::Welcome& welcome,
                                         std::uint32_t slot,
                                         std::uint32_t train_examples) {
  const v1::JobSpec& spec = welcome.job().spec();
  const v1::Distribution& distribution = spec.distribution();
  return {
      .slot = slot,
      .incarnation = welcome.incarnation(),
      .parts = static_cast<std::uint32_t>(distribution.data_servers()),
      .batch_size = static_cast<std::uint32_t>(spec.data().batch_size()),
      .train_examples = train_examples,
      .epochs = static_cast<std::uint64_t>(spec.run_policy().epochs()),
      .target_accuracy = spec.run_policy().has_target_accuracy()
                             ? std::optional(spec.run_policy().target_accuracy())
                             : std::nullopt,
      .epoch_completion = spec.run_policy().epoch_completion(),
      .warm_start_examples = job::WarmStartExamples(welcome.job(), train_examples),
      .controller_timeout = ControllerTimeout(job::ToMilliseconds(spec.detection().heartbeat()))};
}

// What the number of examples says about the rest of the manifest.
absl::Status CheckCount(const v1::TrainingJob& job, std::uint64_t examples) {
  const auto problems = job::CheckExamples(job, static_cast<std::int64_t>(examples));
  return problems.empty() ? absl::OkStatus()
                          : absl::InvalidArgumentError(problems.front().field_path + ": " +
                                                       problems.front().message);
}

absl::Status CheckParts(const BatchSchedulerOptions& scheduler) {
  const PartLayout layout(scheduler.train_examples, scheduler.parts, scheduler.batch_size);
  if (layout.Batches(0) <= kMaxBatchesOfPart) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "spec.data.batchSize: an epoch of " + std::to_string(scheduler.train_examples) +
      " examples has " + std::to_string(layout.Batches(0)) + " batches per data server, at most " +
      std::to_string(kMaxBatchesOfPart) +
      " can be kept track of; raise it or spec.distribution.dataServers");
}

unsigned PipelineThreads(const TransformOptions& transforms) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return transforms.any() ? std::min(cores, kMaxPipelineThreads) : 1;
}

// What the job learns from.
struct JobData {
  std::vector<protocol::DataFile> files;
  LoadedData train;
  LoadedData validation;
};

// All that exists between Start and Stop.
class Running {
 public:
  Running(const v1::Welcome& welcome,
          BatchSchedulerOptions scheduler,
          const JobData& data,
          const DataMetrics& metrics,
          const service::ServiceContext& context)
      : job_{.job_uid = welcome.job_uid(), .attempt = AttemptOf(welcome.attempt())},
        train_examples_(scheduler.train_examples),
        files_(data.files),
        metrics_(metrics),
        transforms_(TransformsOf(welcome.job().spec().data().transformations())),
        builder_({.seed = Seed(welcome),
                  .parts = scheduler.parts,
                  .batch_size = scheduler.batch_size,
                  .transforms = transforms_,
                  .fetch_train = data.train.fetch,
                  .fetch_validation = data.validation.fetch},
                 data.train.set,
                 data.validation.set),
        pipeline_({.threads = PipelineThreads(transforms_),
                   .cache_bytes = static_cast<std::uint64_t>(welcome.job().spec().data().cache()),
                   .seed = Seed(welcome),
                   .train_examples = scheduler.train_examples},
                  builder_,
                  metrics),
        loop_({.scheduler = scheduler,
               .normalisation =
                   NormalisationOf(welcome.job().spec().data().transformations().normalise(),
                                   data.train.set->channels),
               .job = job_,
               .security = context.security},
              {.send = [&controller = context.controller](
                           const protocol::MemberMessage& message) { controller.Send(message); },
               .fail = [&controller = context.controller](
                           const absl::Status& status) { controller.Fail(status, true); }},
              pipeline_,
              metrics) {}

  absl::Status Serve(const service::MemberGenerations& members, rpc::FrameStream& stream) {
    return ServeWork(stream, job_, members, loop_, pipeline_, metrics_);
  }

  SchedulerLoop& loop() { return loop_; }

  /// Of the thread that has been at one piece of work for longest.
  Clock::Duration BusyTime() {
    std::vector<std::uint64_t> turns = pipeline_.Turns();
    turns.insert(turns.begin(), loop_.turns());
    return busy_.Look(turns, clock_.Now());
  }
  [[nodiscard]] std::uint64_t train_examples() const { return train_examples_; }
  [[nodiscard]] const std::vector<protocol::DataFile>& files() const { return files_; }

 private:
  static std::uint64_t Seed(const v1::Welcome& welcome) {
    return static_cast<std::uint64_t>(welcome.job().spec().data().seed());
  }

  const JobAttempt job_;
  const std::uint64_t train_examples_;
  const std::vector<protocol::DataFile> files_;
  const DataMetrics& metrics_;
  const TransformOptions transforms_;
  const BatchBuilder builder_;
  BatchPipeline pipeline_;
  SchedulerLoop loop_;
  const SystemClock clock_;
  BusyMeter busy_;
};

class DataServerService final : public service::Service {
 public:
  explicit DataServerService(const service::ServiceContext& context)
      : context_(context), metrics_(context.metrics) {}

  service::Endpoints GetEndpoints() override {
    return {
        .frame_methods = {{.name = "/adamant.v1.DataServer/Work",
                           .handler = [this](rpc::FrameStream& stream) { return Serve(stream); },
                           .job_of = JobOfWork}}};
  }

  absl::Status Start(const v1::Welcome& welcome) override {
    ADAMANT_ASSIGN_OR_RETURN(const JobData data, Load(welcome));
    BatchSchedulerOptions scheduler = SchedulerOptionsOf(
        welcome, context_.flags.slot, static_cast<std::uint32_t>(data.train.set->size()));
    scheduler.validation_examples = static_cast<std::uint32_t>(data.validation.set->size());
    scheduler.most_frequent = data.validation.set->most_frequent();
    ADAMANT_RETURN_IF_ERROR(CheckParts(scheduler));
    auto running = std::make_shared<Running>(welcome, scheduler, data, metrics_, context_);
    MutexLock lock(mutex_);
    running_ = std::move(running);
    return absl::OkStatus();
  }

  void OnMessage(const protocol::ControllerMessage& message) override {
    SchedulerLoop& loop = GetRunning()->loop();
    if (const auto* view = std::get_if<protocol::Membership>(&message)) {
      members_.SetAll(*view);
      loop.SetMembership(*view);
    } else if (const auto* open = std::get_if<OpenEpoch>(&message)) {
      loop.Post(*open);
    } else if (const auto* close = std::get_if<CloseEpoch>(&message)) {
      loop.Post(*close);
    } else if (const auto* evaluate = std::get_if<Evaluate>(&message)) {
      loop.Post(*evaluate);
    }
  }

  void OnControllerAway() override { GetRunning()->loop().Post(ControllerAway{}); }
  void OnRejoined() override { GetRunning()->loop().Post(ControllerBack{}); }

  protocol::Heartbeat MakeHeartbeat() override {
    const std::shared_ptr<Running> running = GetRunning();
    protocol::DataServerProgress progress = running->loop().progress();
    progress.training_examples = running->train_examples();
    progress.data_files = running->files();
    const std::chrono::duration<double> busy = running->BusyTime();
    return {.progress = std::move(progress), .busy_seconds = busy.count()};
  }

  void Stop() override { GetRunning()->loop().Stop(); }

 private:
  absl::StatusOr<JobData> Load(const v1::Welcome& welcome) {
    const v1::Data& source = welcome.job().spec().data();
    const DataShape shape = ShapeOf(welcome.job());
    const DataPlaces places{.data_root = welcome.data_root(),
                            .fetched = context_.flags.data_dir / "fetched"};
    service::ControllerLink& controller = context_.controller;
    JobData data;
    ADAMANT_ASSIGN_OR_RETURN(data.files, CheckFiles(welcome, places, controller));
    ADAMANT_ASSIGN_OR_RETURN(data.train,
                             LoadData(source.train(), "train", places, shape, controller));
    ADAMANT_RETURN_IF_ERROR(CheckCount(welcome.job(), data.train.set->size()));
    ADAMANT_ASSIGN_OR_RETURN(
        data.validation, LoadData(source.validation(), "validation", places, shape, controller));
    return data;
  }

  absl::Status Serve(rpc::FrameStream& stream) {
    const std::shared_ptr<Running> running = GetRunning();
    return running != nullptr ? running->Serve(members_, stream)
                              : absl::UnavailableError("the data server is starting");
  }

  std::shared_ptr<Running> GetRunning() {
    MutexLock lock(mutex_);
    return running_;
  }

  const service::ServiceContext context_;
  const DataMetrics metrics_;
  service::MemberGenerations members_;
  Mutex mutex_;
  std::shared_ptr<Running> running_ ABSL_GUARDED_BY(mutex_);  // set once, by Start
};

}  // namespace

absl::StatusOr<std::unique_ptr<service::Service>> MakeDataServer(
    const service::ServiceContext& context) {
  return std::make_unique<DataServerService>(context);
}

}  // namespace adamant::data_server
