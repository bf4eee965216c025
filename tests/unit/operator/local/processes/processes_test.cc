#include "operator/local/processes/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "services/common/base/system/files.h"

namespace adamant::local {
namespace {

using controller::ProcessExited;
using controller::Role;
using controller::SlotId;

constexpr SlotId kWorker{Role::kWorker, 0};

class ProcessesTest : public testing::Test {
 protected:
  ProcessesTest() { std::filesystem::create_directories(folder_); }
  ~ProcessesTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path Log() const { return folder_ / "log"; }

  Command Shell(const std::string& script) {
    return {.id = kWorker,
            .generation = ++generation_,
            .arguments = {"/bin/sh", "-c", script},
            .log = Log()};
  }

  // Waits for the next exits, as the main loop does.
  std::vector<ProcessExited> AwaitExit() {
    std::vector<pollfd> descriptors;
    processes_.AddDescriptors(descriptors);
    poll(descriptors.data(), descriptors.size(), 20'000);
    return processes_.Reap();
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("adamant_processes_" + std::to_string(getpid()));
  std::uint64_t generation_ = 0;
  Processes processes_;
};

TEST_F(ProcessesTest, ExitCodesAreToldAndOutputGoesToTheLog) {
  ASSERT_TRUE(processes_.Start(Shell("echo out; echo err >&2; exit 1")).ok());
  const auto exits = AwaitExit();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].id, kWorker);
  EXPECT_EQ(exits[0].generation, 1u);
  EXPECT_EQ(exits[0].how, "exited with code 1");
  EXPECT_EQ(exits[0].exit_code, 1);
  EXPECT_FALSE(exits[0].bad_configuration);
  EXPECT_FALSE(exits[0].cannot_run);
  EXPECT_EQ(ReadFile(Log(), 100).value(), "out\nerr\n");
  EXPECT_TRUE(processes_.empty());
}

TEST_F(ProcessesTest, WhyThisMachineDoesNotLetAProcessRunIsTheLastLineOfItsLog) {
  for (const std::string& before : {std::string(), std::string("head -c 5000 /dev/zero; ")}) {
    ASSERT_TRUE(processes_.Start(Shell(before + "echo; echo out; echo 'no threads'; exit 4")).ok());
    const auto exits = AwaitExit();
    ASSERT_EQ(exits.size(), 1u);
    EXPECT_EQ(exits[0].how, "exited with code 4: no threads");
    EXPECT_TRUE(exits[0].cannot_run);
  }
  ASSERT_TRUE(processes_.Start(Shell("printf '%0900d' 7; exit 4")).ok());
  EXPECT_EQ(AwaitExit().at(0).how, "exited with code 4: " + std::string(300, '0') + " [...]");
  ASSERT_TRUE(processes_.Start(Shell("rm " + Log().string() + "; exit 4")).ok());
  const auto exits = AwaitExit();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].how, "exited with code 4");
}

TEST_F(ProcessesTest, CodeTwoIsBadConfiguration) {
  ASSERT_TRUE(processes_.Start(Shell("exit 2")).ok());
  EXPECT_TRUE(AwaitExit().at(0).bad_configuration);
}

TEST_F(ProcessesTest, KillEndsTheProcessOfThatGenerationOnly) {
  ASSERT_TRUE(processes_.Start(Shell("exec sleep 60")).ok());
  processes_.Kill(kWorker, 7);
  EXPECT_TRUE(processes_.Reap().empty());
  processes_.Kill(kWorker, 1);
  EXPECT_EQ(AwaitExit().at(0).how, "was killed by signal 9");
}

TEST_F(ProcessesTest, AKillForWantOfMemoryIsCalledThatAndSaysWhatTheProcessHad) {
  const std::filesystem::path vmstat = folder_ / "proc/vmstat";
  std::filesystem::create_directories(vmstat.parent_path());
  Processes processes(folder_);
  const auto ends_by = [&](const char* kills, bool by_us) {
    EXPECT_TRUE(processes.Start(Shell(by_us ? "exec sleep 60" : "kill -9 $$")).ok());
    EXPECT_TRUE(WriteFileAtomically(vmstat, kills).ok());
    if (by_us) {
      processes.KillAll();
    }
    std::vector<pollfd> descriptors;
    processes.AddDescriptors(descriptors);
    poll(descriptors.data(), descriptors.size(), 20'000);
    return processes.Reap().at(0).how;
  };
  EXPECT_THAT(ends_by("oom_kill 1\n", false),
              testing::MatchesRegex("was killed by signal 9 as memory ran out \\(oom_kill\\); "
                                    "it had [1-9][0-9]* MiB at most"));
  EXPECT_EQ(ends_by("oom_kill 1\n", false), "was killed by signal 9");
  EXPECT_EQ(ends_by("oom_kill 2\n", true), "was killed by signal 9");
}

TEST_F(ProcessesTest, AMissingProgramOrAFileForTheLogFolderIsAnErrorThatNamesIt) {
  Command command = Shell("");
  command.arguments = {"/nowhere/program"};
  EXPECT_THAT(std::string(processes_.Start(command).message()),
              testing::HasSubstr("/nowhere/program"));
  command = Shell("");
  ASSERT_TRUE(WriteFileAtomically(folder_ / "file", "").ok());
  command.log = folder_ / "file" / "log";
  EXPECT_THAT(std::string(processes_.Start(command).message()), testing::HasSubstr("file/log"));
}

TEST_F(ProcessesTest, AFifoInThePlaceOfALogIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(Log().c_str(), 0644), 0);
  EXPECT_THAT(std::string(processes_.Start(Shell("")).message()),
              testing::HasSubstr(Log().string() + ": is a FIFO, where a file belongs"));
  std::filesystem::remove(Log());
  const std::string fifo_and_code_four =
      "rm '" + Log().string() + "'; mkfifo '" + Log().string() + "'; exit 4";
  ASSERT_TRUE(processes_.Start(Shell(fifo_and_code_four)).ok());
  EXPECT_EQ(AwaitExit().at(0).how, "exited with code 4");
}

TEST_F(ProcessesTest, ADeletedLogFolderIsMadeAgain) {
  std::filesystem::remove_all(folder_);
  ASSERT_TRUE(processes_.Start(Shell("echo out")).ok());
  AwaitExit();
  EXPECT_EQ(ReadFile(Log(), 100).value(), "out\n");
}

TEST_F(ProcessesTest, ChildrenHaveAGroupOfTheirOwnAndNoOpenFilesOfOurs) {
  ASSERT_TRUE(
      processes_.Start(Shell("ps -o pgid= -p $$ | tr -d ' '; echo $$; ls /proc/$$/fd | wc -l"))
          .ok());
  AwaitExit();
  const std::string log = ReadFile(Log(), 1000).value();
  const std::string group = log.substr(0, log.find('\n'));
  EXPECT_EQ(log.substr(0, 2 * group.size() + 2), group + "\n" + group + "\n") << log;
}

// The kernel ends the children of a process that is killed: one that starts a child, then is
// killed, leaves none.
TEST_F(ProcessesTest, ChildrenOfAKilledProcessEnd) {
  const pid_t parent = fork();
  if (parent == 0) {
    Processes own;
    if (!own.Start(Shell("echo $$; exec sleep 60")).ok()) {
      _exit(1);
    }
    while (true) {
      pause();
    }
  }
  pid_t child = 0;
  while (child == 0) {
    const auto log = ReadFile(Log(), 100);
    if (log.ok() && log->find('\n') != std::string::npos) {
      child = static_cast<pid_t>(std::stol(*log));
    }
    std::this_thread::yield();
  }
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  while (kill(child, 0) == 0 &&
         ReadFile("/proc/" + std::to_string(child) + "/stat", 1000).value_or(") Z").find(") Z") ==
             std::string::npos) {
    std::this_thread::yield();  // the test's time limit is the assertion
  }
}

}  // namespace
}  // namespace adamant::local
