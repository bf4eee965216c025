#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "operator/control/control_server.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube/job/job_reconciler.h"
#include "operator/kube/status/job_objects.h"
#include "operator/kube_client/api/event_recorder.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"
#include "tests/unit/operator/kube/job/job_fixture.h"
#include "tests/unit/operator/kube/job/recorded_jobs.h"

namespace adamant::kube {

/// Streams that a test speaks on itself.
class ScriptedControl final : public control::ControlServer {
 public:
  [[nodiscard]] const std::string& address() const override { return address_; }
  absl::Status Listen(const control::SecuredListener& /*listener*/) override {
    return absl::OkStatus();
  }
  [[nodiscard]] std::string secured_address() const override { return ""; }
  void AddJob(const std::string& /*uid*/,
              control::StreamSecurity security,
              const v1::TrainingJob& job,
              const std::string& /*data_root*/,
              Sink sink) override {
    job_ = job;
    security_ = security;
    sink_ = std::move(sink);
  }
  void RemoveJob(const std::string& /*job*/) override { sink_ = nullptr; }
  void Send(const controller::Send& send) override { sent_.push_back(send); }
  void Close(controller::ConnectionId connection) override { closed_.push_back(connection); }
  void SetReport(const std::string& /*job*/, const controller::JobReport& /*report*/) override {}
  void Stop() override {}

  void Tell(controller::ConnectionId connection, controller::MemberMessage message) {
    sink_(controller::Received{connection, std::move(message)});
  }

  [[nodiscard]] const std::vector<controller::ConnectionId>& closed() const { return closed_; }

  /// The messages of one type, with the connections they went to.
  template <class T>
  [[nodiscard]] std::vector<std::pair<controller::ConnectionId, T>> Sent() const {
    std::vector<std::pair<controller::ConnectionId, T>> messages;
    for (const controller::Send& send : sent_) {
      if (const T* message = std::get_if<T>(&send.message)) {
        messages.emplace_back(send.connection, *message);
      }
    }
    return messages;
  }

  /// What members are told of the job.
  [[nodiscard]] const v1::TrainingJob& job() const { return job_; }

  /// How they are to reach it.
  [[nodiscard]] control::StreamSecurity security() const { return security_; }

 private:
  const std::string address_ = "operator:7070";
  v1::TrainingJob job_;
  control::StreamSecurity security_ = control::StreamSecurity::kPlain;
  Sink sink_;
  std::vector<controller::Send> sent_;
  std::vector<controller::ConnectionId> closed_;
};

/// A job whose objects are in a Kubernetes API in memory; the test plays its nodes and processes.
class JobReconcilerRig : public testing::Test {
 protected:
  /// Leads the job from now on; what led it before is gone.
  void Lead(const Json& spec) {
    client_.Create(kTrainingJobs, JobObject()).IgnoreError();  // the first time
    Json job = client_.Get(kTrainingJobs, kJob.key).value();
    job["spec"] = JobObject(spec)["spec"];
    view_ = ParseJobObject(client_.Update(kTrainingJobs, job).value());
    ASSERT_NE(view_->job, nullptr) << view_->problems;
    reconciler_ = nullptr;
    reconciler_ = std::make_unique<JobReconciler>(context_, view_, [] {});
  }

  /// What the informers would hold.
  [[nodiscard]] JobObjects Objects() const {
    JobObjects objects;
    for (const Json& object : List(kPods)) {
      if (auto pod = ParsePod(object); pod != nullptr && pod->job_uid == view_->uid) {
        objects.pods.push_back(std::move(pod));
      }
    }
    for (const Json& object : List(kPodDisruptionBudgets)) {
      if (auto budget = ParseBudget(object); budget != nullptr && budget->job_uid == view_->uid) {
        objects.budgets.push_back(std::move(budget));
      }
    }
    objects.sees_cluster = sees_cluster_;
    if (sees_cluster_) {
      objects.node_of = [this](const std::string& name) {
        const auto node = client_.Get(kNodes, {"", name});
        return node.ok() ? ParseNode(*node) : nullptr;
      };
    }
    return objects;
  }

  /// Works until nothing more follows, and returns how long the reconciler wants to wait then.
  Clock::Duration Work() {
    Clock::TimePoint next{};
    for (int i = 0; i < 3; ++i) {
      next = WorkOn(Objects());
    }
    return next - clock_.Now();
  }
  Clock::TimePoint WorkOn(const JobObjects& objects) {
    const auto next = reconciler_->Work(view_, objects);
    EXPECT_TRUE(next.ok()) << next.status();
    return next.value_or(Clock::TimePoint::max());
  }
  Clock::Duration WorkAfter(Clock::Duration time) {
    clock_.Advance(time);
    return Work();
  }

  /// Of the slot's pods.
  [[nodiscard]] std::uint64_t NewestGeneration(controller::SlotId id) const {
    std::uint64_t newest = 0;
    for (const auto& view : Objects().pods) {
      if (view->IsProcess() && view->pod.process.id == id) {
        newest = std::max(newest, view->pod.process.generation);
      }
    }
    return newest;
  }

  void SetNode(const std::string& name, const std::string& ready) {
    const ObjectKey key{"", name};
    if (!client_.Get(kNodes, key).ok()) {
      EXPECT_TRUE(client_.Create(kNodes, {{"metadata", {{"name", name}}}}).ok());
    }
    Json node = client_.Get(kNodes, key).value();
    node["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", ready}}});
    EXPECT_TRUE(client_.Update(kNodes, node, "status").ok());
  }

  void TakeOutOfService(const std::string& name) {
    Json node = client_.Get(kNodes, {"", name}).value();
    node["spec"]["taints"] =
        Json::array({{{"key", "node.kubernetes.io/out-of-service"}, {"effect", "NoExecute"}}});
    EXPECT_TRUE(client_.Update(kNodes, node).ok());
  }

  void RunOn(const std::string& node, const std::string& pod_name) {
    Json pod = client_.Get(kPods, {kJob.key.ns, pod_name}).value();
    pod["spec"]["nodeName"] = node;
    pod = client_.Update(kPods, pod).value();
    pod["status"]["phase"] = "Running";
    EXPECT_TRUE(client_.Update(kPods, pod, "status").ok());
  }

  /// The node has ended the pod, as was asked of it.
  void ConfirmDeletion(const std::string& pod_name) {
    const ObjectKey key{kJob.key.ns, pod_name};
    EXPECT_TRUE(IsBeingDeleted(pod_name));
    EXPECT_TRUE(client_.Delete(kPods, key, {.grace_period = std::chrono::seconds(0)}).ok());
  }

  [[nodiscard]] bool IsBeingDeleted(const std::string& pod_name) const {
    const auto pod = client_.Get(kPods, {kJob.key.ns, pod_name});
    return pod.ok() && !StringAt(*pod, {"metadata", "deletionTimestamp"}).empty();
  }

  [[nodiscard]] std::vector<std::string> Names(const Resource& resource) const {
    std::vector<std::string> names;
    for (const Json& object : List(resource)) {
      names.push_back(KeyOf(object).name);
    }
    return names;
  }

  [[nodiscard]] std::vector<Json> List(const Resource& resource) const {
    const auto objects = client_.List(resource, {.ns = kJob.key.ns});
    EXPECT_TRUE(objects.ok()) << objects.status();
    return objects.value_or(std::vector<Json>());
  }

  /// The events that warn: "Lost: parameter-server-0 …".
  [[nodiscard]] std::vector<std::string> Warnings() {
    events_.Step();
    std::vector<std::string> texts;
    for (const Json& event : List(kEvents)) {
      if (event["type"] == "Warning") {
        texts.push_back(event["reason"].get<std::string>() + ": " +
                        event["message"].get<std::string>());
      }
    }
    return texts;
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  MemoryApiServer server_{clock_};
  const Client client_ =
      Client(server_, clock_, sleeper_, {.rate = 1e6, .burst = 1e6}).WithoutRetries();
  ScriptedControl control_;
  EventRecorder events_{client_, {.component = "operator", .instance = "a"}, clock_, sleeper_};
  RecordedJobs observed_;
  ReconcilerContext context_{.client = client_,
                             .control = control_,
                             .events = events_,
                             .clock = clock_,
                             .pods = kPodSettings,
                             .observer = &observed_};
  bool sees_cluster_ = true;  // false: as an operator of some namespaces
  std::shared_ptr<const JobView> view_;
  std::unique_ptr<JobReconciler> reconciler_;
};

}  // namespace adamant::kube
