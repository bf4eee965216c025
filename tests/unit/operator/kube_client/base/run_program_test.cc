#include "operator/kube_client/base/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;

Subprocess Shell(const std::string& script) { return {.arguments = {"sh", "-c", script}}; }

TEST(RunProgramTest, OutputErrorsAndCodeAreReturned) {
  const auto result = RunProgram(Shell("echo out; echo err >&2; exit 7"), Cancellation());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "err\n");
  EXPECT_EQ(result->exit_code, 7);
}

TEST(RunProgramTest, ASignalIsAnExitCodeAsInShells) {
  EXPECT_EQ(RunProgram(Shell("kill -TERM $$"), Cancellation())->exit_code, 128 + 15);
}

TEST(RunProgramTest, MuchOutputOfBothKindsDoesNotBlock) {
  const auto result =
      RunProgram(Shell("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"), Cancellation());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output.size(), 300'000U);
  EXPECT_EQ(result->errors.size(), 300'000U);
}

TEST(RunProgramTest, TooMuchOutputIsRefused) {
  Subprocess program = Shell("yes");
  program.max_output = 10'000;
  EXPECT_TRUE(absl::IsResourceExhausted(RunProgram(program, Cancellation()).status()));
}

TEST(RunProgramTest, VariablesAreAddedAndReplaced) {
  Subprocess program = Shell("echo $ADDED$HOME; test -n \"$PATH\"");
  program.environment = {{"ADDED", "a"}, {"HOME", "/h"}};
  const auto result = RunProgram(program, Cancellation());
  EXPECT_EQ(result->output, "a/h\n");
  EXPECT_EQ(result->exit_code, 0);
}

TEST(RunProgramTest, ThereIsNoInput) {
  EXPECT_EQ(RunProgram({.arguments = {"cat"}}, Cancellation())->exit_code, 0);
}

TEST(RunProgramTest, AProgramThatIsNotThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(RunProgram({.arguments = {"/no/such"}}, Cancellation()).status()));
}

TEST(RunProgramTest, AProgramThatDoesNotEndIsKilledAtItsTimeout) {
  Subprocess program = Shell("sleep 60");
  program.timeout = milliseconds(50);
  EXPECT_TRUE(absl::IsDeadlineExceeded(RunProgram(program, Cancellation()).status()));
}

TEST(RunProgramTest, ChildrenThatKeepTheOutputOpenAreNotWaitedFor) {
  const auto result = RunProgram(Shell("sleep 60 & echo done"), Cancellation());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "done\n");
}

TEST(RunProgramTest, AProgramIsKilledWhenCancelled) {
  const Cancellation cancellation;
  std::thread canceller([&] { cancellation.Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(RunProgram(Shell("sleep 60"), cancellation).status()));
  canceller.join();
}

}  // namespace
}  // namespace adamant::kube
