#include "services/worker/rpc/worker_service.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/cache_line_ping.h"
#include "services/common/base/system/thread_affinity.h"
#include "services/worker/core/learner/training_thread.h"

namespace adamant::worker {
namespace {

/// How long a worker that stops waits for servers to acknowledge what it did.
constexpr std::chrono::seconds kStopTimeout{4};

}  // namespace

WorkerService::WorkerService(const service::ServiceContext& context)
    : controller_(context.controller),
      slot_(context.flags.slot),
      security_(context.security),
      metrics_(context.metrics) {}

WorkerService::~WorkerService() {
  if (worker_ != nullptr) {
    worker_->learner().commands().Stop();
    worker_->learner().notifier().Notify();
  }
}

absl::Status WorkerService::Start(const v1::Welcome& welcome) {
  const bool has_threads = welcome.job().spec().distribution().threads_per_worker() > 1;
  const std::optional<double> ping = has_threads ? CacheLinePing() : std::nullopt;
  ADAMANT_ASSIGN_OR_RETURN(WorkerJob job,
                           ReadJob(welcome.job(), welcome.training_examples(), ping));
  job_ = std::make_unique<const WorkerJob>(std::move(job));
  worker_ = std::make_unique<Worker>(
      Worker::Options{.training = job_->options,
                      .synchroniser = {.max_message_bytes = ExchangeLoop::kMaxMessageBytes,
                                       .retain_bytes = job_->retain_bytes}},
      job_->graph,
      job_->layout,
      job_->plan,
      [this] { inbox_.Wake(); });
  const WorkerIdentity identity = {
      .job = {.job_uid = welcome.job_uid(), .attempt = AttemptOf(welcome.attempt())},
      .slot = slot_,
      .incarnation = welcome.incarnation(),
      .security = security_};
  loop_ = std::make_unique<ExchangeLoop>(identity,
                                         ExchangeLoop::Parts{.worker = *worker_,
                                                             .inbox = inbox_,
                                                             .controller = controller_,
                                                             .metrics = metrics_,
                                                             .clock = clock_});
  for (std::size_t i = 0; i < job_->options.threads; ++i) {
    threads_.emplace_back([this, i] { Train(i); });
  }
  const auto activations =
      std::ranges::count_if(job_->plan.tensors, [](const TensorPlan& t) { return t.activations; });
  LogInfo("training",
          {{"threads", job_->options.threads},
           {"mode", job_->mode.Name()},
           {"shareEvery", job_->mode.share_every},
           {"pingNanoseconds", std::lround(ping.value_or(0))},
           {"parameters", job_->plan.elements},
           {"shards", job_->layout.shards().size()},
           {"layersPushingActivations", activations}});
  return absl::OkStatus();
}

void WorkerService::Train(std::size_t thread) {
  if (job_->options.pin_threads) {
    if (const absl::Status pinned = PinThread(thread); !pinned.ok()) {
      LogWarning("a training thread is not pinned", {{"error", pinned.ToString()}});
    }
  }
  absl::StatusOr<std::unique_ptr<TrainingThread>> created =
      TrainingThread::Create(worker_->learner(), worker_->intake(), thread, clock_);
  if (!created.ok()) {
    controller_.Fail(created.status(), /*fatal=*/false);
    return;
  }
  if (thread == 0) {
    LogInfo("plan", {{"kernels", (*created)->Kernels()}});
  }
  (*created)->Run();
}

void WorkerService::OnMessage(const protocol::ControllerMessage& message) {
  if (const auto* view = std::get_if<protocol::Membership>(&message)) {
    loop_->OnMembership(*view);
  } else if (const auto* flush = std::get_if<protocol::FlushWorker>(&message)) {
    loop_->OnFlush(flush->epoch);
  } else if (const auto* pause = std::get_if<protocol::PausePushes>(&message)) {
    loop_->OnPause(pause->checkpoint);
  } else if (const auto* resume = std::get_if<protocol::ResumePushes>(&message)) {
    loop_->OnResume(resume->checkpoint);
  }
}

protocol::Heartbeat WorkerService::MakeHeartbeat() { return loop_->MakeHeartbeat(); }

void WorkerService::Stop() { loop_->Stop(kStopTimeout); }

}  // namespace adamant::worker
