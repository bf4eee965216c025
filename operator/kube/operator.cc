#include "operator/kube/operator.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "operator/kube/client/time.h"
#include "operator/kube/custom_resources.h"
#include "operator/kube/job_status.h"
#include "operator/kube/schema/message_json.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr char kByJob[] = "job";
constexpr char kOurPods[] = "app.kubernetes.io/managed-by=adamant-operator";

bool HasEnded(const v1::TrainingJobStatus& status) { return status.has_completion_time(); }

}  // namespace

Operator::Operator(const Client& client,
                   const Client& lease_client,
                   const Clock& clock,
                   Sleeper& sleeper,
                   OperatorOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      jobs_(client, kTrainingJobs, {}, ParseJobObject, clock, sleeper),
      pods_(client, kPods, {.selection = {.label_selector = kOurPods}}, ParsePod, clock, sleeper),
      events_(client, {.component = kFieldManager, .instance = options_.identity}, clock, sleeper),
      election_(lease_client,
                {.lease = {options_.name_space, "adamant-operator"}, .identity = options_.identity},
                {.started = [this](std::int64_t /*transitions*/) { OnStarted(); },
                 .lost = [] { LogWarning("the lease could not be renewed"); },
                 .stopped = [this] { OnStopped(); },
                 .new_leader =
                     [](const std::string& identity) {
                       LogInfo("leader", {{"identity", identity}});
                     }},
                clock,
                sleeper) {
  const auto wake = [this](const std::string& key) {
    const MutexLock lock(mutex_);
    if (queue_ != nullptr) {
      queue_->Add(key);
    }
  };
  jobs_.AddHandler([wake](const Informer<JobView>::Change& change) { wake(ToString(change.key)); });
  pods_.AddIndex(kByJob, [](const PodView& pod) { return std::vector{pod.job_uid}; });
  pods_.AddHandler([wake](const Informer<PodView>::Change& change) {
    const PodView& pod = change.after != nullptr ? *change.after : *change.before;
    wake(ToString(ObjectKey{change.key.ns, pod.job_name}));
  });
}

Operator::~Operator() { Stop(); }

bool Operator::leads() const {
  const MutexLock lock(mutex_);
  return queue_ != nullptr;
}

void Operator::Start() {
  jobs_.Start();
  pods_.Start();
  events_.Start();
  election_.Start();
}

void Operator::Stop() {
  {
    const MutexLock leadership(leadership_mutex_);
    if (std::exchange(stopped_, true)) {
      return;
    }
  }
  OnStopped();
  election_.Stop();
  events_.Stop();
  pods_.Stop();
  jobs_.Stop();
}

void Operator::OnStarted() {
  const MutexLock leadership(leadership_mutex_);
  if (stopped_ || leads()) {
    return;  // led already: the lease was won again, and nobody had it meanwhile
  }
  while (!ready()) {
    if (!jobs_.WaitUntilSynced(std::chrono::seconds(1)) ||
        !pods_.WaitUntilSynced(std::chrono::seconds(1))) {
      LogInfo("waiting for the cluster's jobs and pods");
    }
  }
  auto control = control::StartControlServer(options_.control_listen);
  if (!control.ok()) {
    LogError("cannot listen for control streams", {{"error", control.status().ToString()}});
    return;
  }
  control_ = *std::move(control);
  context_ = std::make_unique<BodyContext>(BodyContext{.client = client_,
                                                       .control = *control_,
                                                       .events = events_,
                                                       .clock = clock_,
                                                       .pods = options_.pods});
  {
    const MutexLock lock(mutex_);
    queue_ = std::make_shared<WorkQueue>(clock_);
  }
  LogInfo("leads", {{"control", control_->address()}});
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this] { WorkLoop(); });
  }
  EnqueueAll();
}

void Operator::OnStopped() {
  const MutexLock leadership(leadership_mutex_);
  std::shared_ptr<WorkQueue> queue;
  {
    const MutexLock lock(mutex_);
    queue = std::exchange(queue_, nullptr);
  }
  if (queue == nullptr) {
    return;
  }
  queue->ShutDown();
  workers_.clear();
  {
    const MutexLock lock(mutex_);
    bodies_.clear();
  }
  control_->Stop();
  context_.reset();
  control_.reset();
  LogInfo("leads no more");
}

void Operator::EnqueueAll() {
  for (const auto& job : jobs_.All()) {
    const MutexLock lock(mutex_);
    queue_->Add(ToString(job->key));
  }
}

void Operator::WorkLoop() {
  std::shared_ptr<WorkQueue> queue;
  {
    const MutexLock lock(mutex_);
    queue = queue_;
  }
  while (queue != nullptr) {
    const std::optional<std::string> key = queue->Take();
    if (!key) {
      return;
    }
    Work(*key);
    queue->Done(*key);
  }
}

void Operator::Work(const std::string& key) {
  std::shared_ptr<WorkQueue> queue;
  {
    const MutexLock lock(mutex_);
    queue = queue_;
  }
  if (queue == nullptr) {
    return;
  }
  const auto parsed = ParseObjectKey(key);
  const auto view = parsed.ok() ? jobs_.Get(*parsed) : nullptr;
  if (view == nullptr || view->deleting) {
    return Drop(key);
  }
  absl::StatusOr<Clock::TimePoint> next = WorkOn(key, view);
  if (absl::IsAborted(next.status())) {
    LogWarning("another controller leads", {{"job", key}, {"why", next.status().ToString()}});
    Drop(key);
  }
  if (!next.ok()) {
    LogWarning("work to be repeated", {{"job", key}, {"error", next.status().ToString()}});
    return queue->Retry(key);
  }
  queue->Forget(key);
  if (*next != Clock::TimePoint::max()) {
    queue->AddAfter(key, std::max(*next - clock_.Now(), Clock::Duration::zero()));
  }
}

absl::StatusOr<Clock::TimePoint> Operator::WorkOn(const std::string& key,
                                                  const std::shared_ptr<const JobView>& view) {
  const auto body = BodyOf(key, view);
  if (body == nullptr) {
    if (view->job == nullptr) {
      ADAMANT_RETURN_IF_ERROR(RejectInvalid(*view));
      return Clock::TimePoint::max();
    }
    return Expire(*view);
  }
  auto next = body->Work(view, pods_.ByIndex(kByJob, view->uid));
  if (body->done() && HasEnded(*view->status)) {
    Drop(key);
    return Expire(*view);
  }
  return next;
}

std::shared_ptr<JobBody> Operator::BodyOf(const std::string& key,
                                          const std::shared_ptr<const JobView>& view) {
  std::shared_ptr<JobBody> old;
  const MutexLock lock(mutex_);
  auto& body = bodies_[key];
  if (body != nullptr && body->uid() != view->uid) {
    old = std::exchange(body, nullptr);
  }
  if (body == nullptr) {
    if (view->job == nullptr || HasEnded(*view->status) || queue_ == nullptr) {
      bodies_.erase(key);
      return nullptr;
    }
    body = std::make_shared<JobBody>(*context_, view, [queue = queue_, key] { queue->Add(key); });
  }
  return body;
}

void Operator::Drop(const std::string& key) {
  std::shared_ptr<JobBody> body;
  const MutexLock lock(mutex_);
  if (const auto found = bodies_.find(key); found != bodies_.end()) {
    body = std::move(found->second);
    bodies_.erase(found);
  }
}

// Deletes a job that has ended when its time is over.
absl::StatusOr<Clock::TimePoint> Operator::Expire(const JobView& view) const {
  if (view.job == nullptr || !HasEnded(*view.status) ||
      !view.job->spec().run_policy().has_ttl_after_finished()) {
    return Clock::TimePoint::max();
  }
  const v1::RunPolicy& policy = view.job->spec().run_policy();
  ADAMANT_ASSIGN_OR_RETURN(const WallTime ended, ParseTime(view.status->completion_time()));
  const auto left = ended + std::chrono::seconds(policy.ttl_after_finished().seconds()) +
                    std::chrono::nanoseconds(policy.ttl_after_finished().nanos()) -
                    clock_.WallNow();
  if (left > Clock::Duration::zero()) {
    return clock_.Now() + std::chrono::duration_cast<Clock::Duration>(left);
  }
  LogInfo("deletes a job whose time after its end is over", {{"job", ToString(view.key)}});
  const absl::Status deleted = client_.Delete(kTrainingJobs, view.key, {.uid = view.uid});
  ADAMANT_RETURN_IF_ERROR(absl::IsNotFound(deleted) ? absl::OkStatus() : deleted);
  return Clock::TimePoint::max();
}

absl::Status Operator::RejectInvalid(const JobView& view) const {
  if (view.status->observed_generation() == view.generation) {
    return absl::OkStatus();
  }
  const v1::TrainingJobStatus status = InvalidStatus(view, FormatTime(clock_.WallNow()));
  Json object = {
      {"metadata", {{"name", view.key.name}, {"namespace", view.key.ns}, {"uid", view.uid}}},
      {"status", MessageJson(status)}};
  return client_
      .Apply(kTrainingJobs,
             std::move(object),
             {.field_manager = kFieldManager, .force = true, .subresource = "status"})
      .status();
}

}  // namespace adamant::kube
