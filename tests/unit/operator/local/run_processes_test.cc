#include "operator/local/run_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/system/files.h"

namespace adamant::local {
namespace {

using controller::Role;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Keeps what is to be started.
class KeptCommands final : public Launcher {
 public:
  absl::Status Start(const Command& command) override {
    commands.push_back(command);
    return absl::OkStatus();
  }
  void Kill(controller::SlotId /*id*/, std::uint64_t /*generation*/) override {}
  void KillAll() override {}
  void AddDescriptors(std::vector<pollfd>& /*descriptors*/) const override {}
  std::vector<controller::ProcessExited> Reap() override { return {}; }

  std::vector<Command> commands;
};

class RunProcessesTest : public testing::Test {
 protected:
  RunProcessesTest() { EXPECT_TRUE(CreateRunFolder(paths_, "job").ok()); }
  ~RunProcessesTest() override { std::filesystem::remove_all(paths_.root); }

  absl::Status Start(controller::SlotId id, std::uint64_t generation) {
    return processes_.Start({id, generation},
                            {.controller = "127.0.0.1:5"},
                            [this](std::string text) { told_.push_back(std::move(text)); });
  }

  const RunPaths paths_{std::filesystem::temp_directory_path() /
                        ("adamant_run_processes_" + std::to_string(getpid()))};
  v1::TrainingJob job_;
  KeptCommands launcher_;
  RunProcesses processes_{job_, paths_, "/programs", &launcher_};
  std::vector<std::string> told_;
};

TEST_F(RunProcessesTest, AProcessHasItsProgramFlagsFolderAndLog) {
  ASSERT_TRUE(Start({Role::kWorker, 1}, 3).ok());
  ASSERT_EQ(launcher_.commands.size(), 1u);
  const Command& command = launcher_.commands[0];
  EXPECT_THAT(command.arguments,
              ElementsAre("/programs/adamant-worker",
                          "--controller",
                          "127.0.0.1:5",
                          "--slot",
                          "1",
                          "--generation",
                          "3",
                          "--data-dir",
                          (paths_.data() / "worker-1").string()));
  EXPECT_EQ(command.log, paths_.logs() / "worker-1.log");
  EXPECT_EQ(command.generation, 3u);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(RunProcessesTest, WhatIsInThePlaceOfItsFolderIsMovedAsideAndTold) {
  ASSERT_TRUE(WriteFile(paths_.data() / "worker-0", "no folder").ok());
  ASSERT_TRUE(Start({Role::kWorker, 0}, 1).ok());
  EXPECT_THAT(told_, ElementsAre(HasSubstr("worker-0")));
  EXPECT_FALSE(std::filesystem::is_regular_file(paths_.data() / "worker-0"));
  EXPECT_EQ(launcher_.commands.size(), 1u);
}

TEST_F(RunProcessesTest, OnlyWhereNoOtherLauncherIsGivenTheyAreChildren) {
  EXPECT_FALSE(processes_.AreChildren());
  EXPECT_TRUE(RunProcesses(job_, paths_, "/programs", nullptr).AreChildren());
}

}  // namespace
}  // namespace adamant::local
