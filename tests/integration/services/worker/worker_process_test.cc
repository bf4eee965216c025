// The program over real gRPC, with a parameter server's core in this process and a controller and a
// data server played by the test.

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/model/model.h"
#include "tests/fakes/fake_controller.h"
#include "tests/fakes/port_attack.h"
#include "tests/integration/services/common/http/http_client.h"
#include "tests/integration/services/worker/fake_data_server.h"
#include "tests/integration/services/worker/parameter_server_here.h"

namespace adamant::worker {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    train: {digits: {seed: 1, examples: 500}}
    validation: {digits: {seed: 2, examples: 100}}
  distribution:
    workers: 1
    threadsPerWorker: 2
    parameterServers: {count: 1, buckets: 4}
    fetchEvery: 2
    pushEvery: 2
)";

class WorkerProcessTest : public testing::Test {
 protected:
  ~WorkerProcessTest() override {
    if (pid_ > 0) {
      Signal(SIGKILL);
    }
    fs::remove_all(folder_);
  }

  static fs::path NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-worker-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  static v1::TrainingJob Job() {
    const job::ParseResult parsed = job::ParseJob(kManifest, "job.yaml");
    EXPECT_NE(parsed.job, nullptr);
    return *parsed.job;
  }

  parameter_server::ParameterServerOptions ParameterServerOptions() const {
    parameter_server::ParameterServerOptions options;
    options.job_uid = 7;
    options.seed = 1;
    options.parameters = model::BuildGraph(job::NetOf(job_)).value().parameters;
    options.buckets = 4;
    options.optimisers = job::OptimisersOf(job_, options.parameters).value();
    options.flush.interval = std::chrono::hours(1);
    return options;
  }

  void Spawn() {
    const std::string slot = "0";
    std::vector<std::string> flags = {
        WORKER_PATH, "--controller", controller_.address(), "--slot", slot, "--data-dir", folder_};
    std::vector<char*> argv;
    for (std::string& flag : flags) {
      argv.push_back(flag.data());
    }
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&pid_, WORKER_PATH, nullptr, nullptr, argv.data(), environ), 0);
    const auto join = controller_.Receive();
    ASSERT_TRUE(join.has_value() && join->has_join());
    metrics_address_ = join->join().metrics_address();
    v1::ControllerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_term(1);
    welcome.set_incarnation(1);
    welcome.set_job_uid(7);
    *welcome.mutable_job() = job_;
    controller_.Send(message);
    SendMembership();
  }

  void SendMembership() {
    v1::ControllerMessage message;
    v1::Membership& view = *message.mutable_membership();
    const parameter_server::Configuration& record = parameter_server_->record();
    view.set_version(record.version);
    for (const bool data : {false, true}) {
      v1::Member& member = *view.add_members();
      member.set_role(data ? v1::DATA_SERVER : v1::PARAMETER_SERVER);
      member.set_incarnation(data ? Incarnation(1) : record.primary.incarnation);
      member.set_address(data ? data_server_.address() : parameter_server_->address());
    }
    for (int bucket = 0; bucket < 4; ++bucket) {
      v1::Configuration& line = *view.add_buckets();
      line.set_epoch(record.version);
      line.set_generation(record.generation);
      line.mutable_primary()->set_incarnation(record.primary.incarnation);
    }
    view.add_part_owner(0);
    controller_.Send(message);
  }

  void Flush() {
    v1::ControllerMessage message;
    message.mutable_flush_worker()->set_epoch(1);
    controller_.Send(message);
    const auto answer = controller_.Receive();
    ASSERT_TRUE(answer.has_value() && answer->has_worker_flushed());
    EXPECT_EQ(answer->worker_flushed().epoch(), 1u);
  }

  int Signal(int signal) {
    kill(pid_, signal);
    return Await();
  }

  int Await() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const fs::path folder_ = NewFolder();
  const v1::TrainingJob job_ = Job();
  fakes::FakeController controller_;
  std::unique_ptr<ParameterServerHere> parameter_server_ =
      std::make_unique<ParameterServerHere>(ParameterServerOptions());
  FakeDataServer data_server_;
  std::string metrics_address_;
  pid_t pid_ = 0;
};

TEST_F(WorkerProcessTest, TrainsFlushesAndEvaluates) {
  Spawn();
  data_server_.Dispatch(30);
  data_server_.AwaitAcknowledged(30);
  data_server_.CloseEpoch(1);
  Flush();
  const std::vector<std::uint64_t> versions = parameter_server_->Versions();
  EXPECT_GE(versions[0], 30u / (2 * 2));
  for (const std::uint64_t version : versions) {
    EXPECT_EQ(version, versions[0]) << "every push changes every shard once";
  }
  ASSERT_TRUE(parameter_server_->core().TakeSnapshot({.snapshot = 1, .keep_from = 1}).ok());
  data_server_.DispatchValidation(3, 1);
  data_server_.AwaitEvaluated(3);
  const v1::WorkerProgress progress = controller_.ReceiveHeartbeat().worker();
  EXPECT_EQ(progress.trained_examples(), 30u * 32);
  EXPECT_EQ(progress.pushes_acknowledged(), versions[0]);
  EXPECT_EQ(progress.pushes_refused() + progress.updates_lost(), 0u);
  EXPECT_EQ(Signal(SIGTERM), 0);
}

// It serves nothing but its metrics.
TEST_F(WorkerProcessTest, StrangersCostLittleMemoryAndDoNotKeepItsMetrics) {
  Spawn();
  data_server_.Dispatch(30);
  data_server_.AwaitAcknowledged(30);
  const fakes::Damage damage = fakes::Attack(
      pid_,
      {{.address = metrics_address_, .methods = {}}},
      [this] {
        return http::Get(metrics_address_, "/metrics").find("adamant_worker") != std::string::npos;
      },
      std::cout);
  EXPECT_LE(damage.bytes >> 20, 64u);
  EXPECT_LE(damage.slowest.count(), 5'000);  // 1,000 where nothing else runs
  data_server_.Dispatch(30);
  data_server_.AwaitAcknowledged(60);
}

TEST_F(WorkerProcessTest, BrokenStreamsLoseAndRepeatNothing) {
  Spawn();
  data_server_.Dispatch(200);
  for (std::size_t acknowledged = 20; acknowledged <= 140; acknowledged += 20) {
    data_server_.AwaitAcknowledged(acknowledged);
    parameter_server_->BreakStreams();
    if (acknowledged % 40 == 0) {
      data_server_.BreakStreams();
    }
  }
  data_server_.AwaitAcknowledged(200);
  data_server_.CloseEpoch(1);
  Flush();
  controller_.ReceiveHeartbeat();
  const v1::WorkerProgress progress = controller_.ReceiveHeartbeat().worker();
  for (const std::uint64_t version : parameter_server_->Versions()) {
    EXPECT_EQ(version, progress.pushes_acknowledged()) << "each push is applied once";
  }
  EXPECT_EQ(progress.updates_lost(), 0u);
}

TEST_F(WorkerProcessTest, WhatADeadServerHadNotWrittenIsSentAgain) {
  Spawn();
  data_server_.Dispatch(80);
  for (const std::size_t acknowledged : {20, 40, 60}) {
    data_server_.AwaitAcknowledged(acknowledged);
    parameter_server_->Restart();
    SendMembership();
  }
  data_server_.AwaitAcknowledged(80);
  data_server_.CloseEpoch(1);
  Flush();
  controller_.ReceiveHeartbeat();
  const v1::WorkerProgress progress = controller_.ReceiveHeartbeat().worker();
  for (const std::uint64_t version : parameter_server_->Versions()) {
    EXPECT_EQ(version, progress.pushes_acknowledged()) << "each push is applied once";
  }
  EXPECT_EQ(progress.updates_lost(), 0u);
  EXPECT_GT(progress.updates_resent(), 0u);
  EXPECT_GT(progress.retained_bytes(), 0u);
}

TEST_F(WorkerProcessTest, PausesPushesForACheckpoint) {
  Spawn();
  data_server_.DispatchAgain();  // while the worker comes to rest it may have no slot for a batch
  data_server_.Dispatch(200);
  data_server_.AwaitAcknowledged(20);
  v1::ControllerMessage message;
  message.mutable_pause_pushes()->set_checkpoint(3);
  controller_.Send(message);
  const auto answer = controller_.Receive();
  ASSERT_TRUE(answer.has_value() && answer->has_pushes_paused());
  EXPECT_EQ(answer->pushes_paused().checkpoint(), 3u);
  for (const std::uint64_t version : parameter_server_->Versions()) {
    EXPECT_EQ(version, answer->pushes_paused().sequence());
  }
  message.mutable_resume_pushes()->set_checkpoint(3);
  controller_.Send(message);
  data_server_.AwaitAcknowledged(200);
  controller_.ReceiveHeartbeat();
  EXPECT_GT(controller_.ReceiveHeartbeat().worker().held_seconds(), 0);
}

TEST_F(WorkerProcessTest, ExitsWhenAnotherProcessHasItsSlot) {
  ASSERT_TRUE(parameter_server_->core().Admit({.slot = 0, .incarnation = 2}).ok());
  Spawn();
  const auto failure = controller_.Receive();
  ASSERT_TRUE(failure.has_value() && failure->has_failure());
  EXPECT_FALSE(failure->failure().fatal());
  EXPECT_EQ(failure->failure().message(), "another process has taken this worker's slot");
  EXPECT_EQ(Await(), 1);
}

TEST_F(WorkerProcessTest, OnSigtermItHandsOverWhatItDidAndHandsBackTheRest) {
  Spawn();
  data_server_.Dispatch(100000);
  data_server_.AwaitAcknowledged(10);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Signal(SIGTERM), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  data_server_.AwaitEnd();
  // What crosses the last message of a worker it cannot hand back; the end of the stream says so.
  EXPECT_EQ(data_server_.acknowledged() + data_server_.handed_back() + data_server_.out(),
            data_server_.dispatched())
      << "no batch is both";
  EXPECT_GT(data_server_.handed_back(), 0u);
}

TEST_F(WorkerProcessTest, SigtermEndsItAlsoWhenNoServerAnswers) {
  Spawn();
  data_server_.Dispatch(100000);
  data_server_.AwaitAcknowledged(10);
  parameter_server_.reset();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Signal(SIGTERM), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(6));
}

TEST_F(WorkerProcessTest, DataThatDoesNotFitTheModelFailsTheJob) {
  data_server_.SetChannels(3);
  Spawn();
  const auto failure = controller_.Receive();
  ASSERT_TRUE(failure.has_value() && failure->has_failure());
  EXPECT_TRUE(failure->failure().fatal());
  EXPECT_EQ(failure->failure().message(), "the data has 3 channels, the model's input 1");
  EXPECT_EQ(Await(), 1);
}

}  // namespace
}  // namespace adamant::worker
