#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "services/common/rpc/server.h"
#include "services/common/service/service.h"
#include "tests/fakes/fake_controller.h"

namespace adamant::service {
namespace {

namespace fs = std::filesystem;

class RunServiceTest : public testing::Test {
 protected:
  ~RunServiceTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  void Spawn(std::vector<std::string> flags) {
    flags.insert(flags.begin(), ECHO_SERVICE_PATH);
    std::vector<char*> argv;
    for (std::string& flag : flags) {
      argv.push_back(flag.data());
    }
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&pid_, ECHO_SERVICE_PATH, nullptr, nullptr, argv.data(), environ), 0);
  }

  void SpawnWithDefaults(const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags = {
        "--controller", controller_.address(), "--slot", "0", "--data-dir", folder_ / "data"};
    flags.insert(flags.end(), more.begin(), more.end());
    Spawn(flags);
  }

  void SpawnAndWelcome(std::uint64_t job_uid = 1) {
    SpawnWithDefaults();
    const auto join = controller_.Receive();
    ASSERT_TRUE(join.has_value() && join->has_join());
    controller_.Welcome(1, 1, job_uid);
  }

  int WaitForExit() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  void SendEpoch(DataEpoch epoch) {
    v1::ControllerMessage message;
    message.mutable_open_epoch()->set_epoch(epoch);
    controller_.Send(message);
  }

  static fs::path NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-service-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  const fs::path folder_ = NewFolder();
  fakes::FakeController controller_;
  pid_t pid_ = 0;
};

TEST_F(RunServiceTest, JoinNamesWhereItServesItsJob) {
  SpawnWithDefaults();
  const auto join = controller_.Receive();
  ASSERT_TRUE(join.has_value());
  EXPECT_EQ(join->join().role(), v1::DATA_SERVER);
  EXPECT_EQ(join->join().uid().size(), 36u);
  EXPECT_EQ(join->join().address().rfind("127.0.0.1:", 0), 0u);
  EXPECT_EQ(join->join().metrics_address().rfind("127.0.0.1:", 0), 0u);
  const auto open = [&](const std::string& job) {
    return rpc::OpenFrameStream(join->join().address(), "/adamant.test/Stream", 1024, {}, job);
  };
  EXPECT_TRUE(absl::IsUnavailable(open("1")->Read().status())) << "it has not joined";
  controller_.Welcome(1, 1, 1);
  controller_.ReceiveHeartbeat();
  EXPECT_TRUE(absl::IsUnavailable(open("")->Read().status())) << "nobody knows for which job";
  const auto stream = open("1");
  EXPECT_TRUE(stream->Write({"hello", {}}).ok());
  EXPECT_TRUE(absl::IsOutOfRange(stream->Read().status()));
  EXPECT_TRUE(fs::is_directory(folder_ / "data"));
}

TEST_F(RunServiceTest, MessagesReachTheServiceAndHeartbeatsTheController) {
  SpawnAndWelcome();
  SendEpoch(3);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 3u);
  EXPECT_EQ(controller_.ReceiveHeartbeat().worker().trained_examples(), 42u);
  EXPECT_EQ(controller_.ReceiveHeartbeat().worker().trained_examples(), 42u);
}

TEST_F(RunServiceTest, SigtermStopsInOrderWithCode0) {
  SpawnAndWelcome();
  SendEpoch(3);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 3u);
  kill(pid_, SIGTERM);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 1000u);  // from Stop
  EXPECT_TRUE(controller_.Receive()->has_leaving());
  EXPECT_FALSE(controller_.Receive().has_value());
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(RunServiceTest, SigtermStopsWithTheCodeThatIsAskedFor) {
  SpawnWithDefaults({"--signalled-exit-code", "143"});
  ASSERT_TRUE(controller_.Receive()->has_join());
  controller_.Welcome(1, 1, 1);
  SendEpoch(3);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 3u);
  kill(pid_, SIGTERM);
  EXPECT_EQ(WaitForExit(), 143);
}

TEST_F(RunServiceTest, AStopFromTheControllerIsCode0WhateverIsAskedForAfterSignals) {
  SpawnWithDefaults({"--signalled-exit-code", "143"});
  ASSERT_TRUE(controller_.Receive()->has_join());
  controller_.Welcome(1, 1, 1);
  v1::ControllerMessage stop;
  stop.mutable_stop()->set_reason("done");
  controller_.Send(stop);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(RunServiceTest, SigtermLetsTheServiceHandOverFirst) {
  SpawnAndWelcome();
  SendEpoch(50);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 50u);
  kill(pid_, SIGTERM);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 3000u);  // from BeginDrain
  SendEpoch(51);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 51u);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 1000u);  // from Stop
  EXPECT_TRUE(controller_.Receive()->has_leaving());
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(RunServiceTest, AStopFromTheControllerEndsTheHandingOver) {
  SpawnAndWelcome();
  SendEpoch(50);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 50u);
  kill(pid_, SIGTERM);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 3000u);
  v1::ControllerMessage stop;
  stop.mutable_stop()->set_reason("done");
  controller_.Send(stop);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 1000u);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(RunServiceTest, TheServiceHearsThatTheStreamIsUpAgain) {
  SpawnAndWelcome();
  SendEpoch(3);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 3u);
  controller_.Break();
  EXPECT_FALSE(controller_.Receive().has_value());
  EXPECT_TRUE(controller_.Receive()->has_join());
  controller_.Welcome(1, 1, 1);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 2000u);
}

TEST_F(RunServiceTest, StopFromTheControllerIsCode0) {
  SpawnAndWelcome();
  v1::ControllerMessage stop;
  stop.mutable_stop()->set_reason("done");
  controller_.Send(stop);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(RunServiceTest, SigtermBeforeWelcomeIsCode0) {
  SpawnWithDefaults();
  ASSERT_TRUE(controller_.Receive()->has_join());
  kill(pid_, SIGTERM);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(RunServiceTest, FailedStartIsReportedAndCode1) {
  SpawnAndWelcome(/*job_uid=*/13);
  const auto failure = controller_.Receive();
  EXPECT_EQ(failure->failure().message(), "job 13 cannot start");
  EXPECT_TRUE(failure->failure().fatal());
  EXPECT_EQ(WaitForExit(), 1);
}

TEST_F(RunServiceTest, FailureAtWorkIsReportedAndCode1) {
  SpawnAndWelcome();
  SendEpoch(99);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 99u);
  EXPECT_EQ(controller_.Receive()->failure().message(), "epoch 99 failed");
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 1000u);  // from Stop
  EXPECT_EQ(WaitForExit(), 1);
}

TEST_F(RunServiceTest, RefusalIsCode1) {
  SpawnWithDefaults();
  ASSERT_TRUE(controller_.Receive()->has_join());
  v1::ControllerMessage refused;
  refused.mutable_refused()->set_reason("slot taken");
  controller_.Send(refused);
  EXPECT_EQ(WaitForExit(), 1);
}

TEST_F(RunServiceTest, BadFlagsAndConfigurationAreCode2) {
  Spawn({"--slot", "0"});
  EXPECT_EQ(WaitForExit(), 2);
  SpawnWithDefaults({"--log-level", "loud"});
  EXPECT_EQ(WaitForExit(), 2);
  Spawn({"--controller", "127.0.0.1:1", "--slot", "77", "--data-dir", folder_});
  EXPECT_EQ(WaitForExit(), 2);
  Spawn({"--controller", "127.0.0.1:1", "--slot", "0", "--data-dir", "/dev/null/x"});
  EXPECT_EQ(WaitForExit(), 2);
}

TEST_F(RunServiceTest, TakenPortIsCode1) {
  SpawnWithDefaults({"--listen", controller_.address()});
  EXPECT_EQ(WaitForExit(), 1);
}

TEST_F(RunServiceTest, ProcessWhoseParentHasEndedDoesNotStart) {
  SpawnWithDefaults({"--parent-pid", "1"});
  EXPECT_EQ(WaitForExit(), 1);
}

TEST_F(RunServiceTest, SecondSignalEndsAtOnce) {
  SpawnWithDefaults({"--parent-pid", std::to_string(getpid())});
  ASSERT_TRUE(controller_.Receive()->has_join());
  controller_.Welcome(1, 1, 1);
  SendEpoch(3);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 3u);
  kill(pid_, SIGTERM);
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 1000u);
  kill(pid_, SIGINT);
  const int code = WaitForExit();  // the orderly stop may have been faster
  EXPECT_TRUE(code == 0 || code == 1) << code;
}

}  // namespace
}  // namespace adamant::service
