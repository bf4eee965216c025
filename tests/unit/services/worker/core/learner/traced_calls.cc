#include "tests/unit/services/worker/core/learner/traced_calls.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace adamant::worker {
namespace {

// System calls that Linux does not have: it answers ENOSYS, and whoever traces sees them.
constexpr std::int64_t kBegin = 1'000'001;
constexpr std::int64_t kEnd = 1'000'002;

// What a tracer reads in the place of the signal at a system call.
constexpr int kAtSystemCall = SIGTRAP | 0x80;

[[noreturn]] void RunTraced(const std::function<void()>& work) {
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  std::raise(SIGSTOP);
  work();
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

// Lets the child run to where it next enters or leaves a system call; false when it has ended.
bool RunToNextStop(pid_t child, int& status) {
  const int signal =
      WSTOPSIG(status) == kAtSystemCall || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
  ptrace(PTRACE_SYSCALL, child, nullptr, signal);
  return waitpid(child, &status, 0) == child && WIFSTOPPED(status);
}

}  // namespace

CountSystemCalls::CountSystemCalls() { syscall(kBegin); }
CountSystemCalls::~CountSystemCalls() { syscall(kEnd); }

SystemCalls TraceSystemCalls(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    RunTraced(work);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL),
            0);
  SystemCalls calls;
  bool counting = false;
  bool entering = true;
  while (RunToNextStop(child, status)) {
    if (WSTOPSIG(status) != kAtSystemCall) {
      continue;
    }
    if (entering) {
      user_regs_struct registers{};
      ptrace(PTRACE_GETREGS, child, nullptr, &registers);
      const auto number = static_cast<std::int64_t>(registers.orig_rax);
      counting = number == kBegin || (counting && number != kEnd);
      if (counting && number != kBegin) {
        ++calls[number];
      }
    }
    entering = !entering;
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  return calls;
}

}  // namespace adamant::worker
