#include "services/common/base/system/process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "services/common/base/system/files.h"

namespace adamant {
namespace {

constexpr char kProgram[] = "adamant-test";

// Throws where nobody catches.
template <class Error>
void ThrowUncaught(Error error) {
  PrepareProcess(kProgram);
  std::thread([&] { throw error; }).join();
}

std::system_error Failed(std::errc code) { return std::system_error(std::make_error_code(code)); }

TEST(ProcessDeathTest, ALackOfMemoryOrThreadsIsOneLineAndTheExitCodeOfThisMachine) {
  const auto exits = testing::ExitedWithCode(kExitCannotRun);
  EXPECT_EXIT(ThrowUncaught(Failed(std::errc::resource_unavailable_try_again)),
              exits,
              "^adamant-test: Resource temporarily unavailable; limits of memory, threads or "
              "processes are likely .ulimit -v, [^\n]*\n$");
  EXPECT_EXIT(ThrowUncaught(Failed(std::errc::not_enough_memory)),
              exits,
              "^adamant-test: Cannot allocate memory; limits of memory");
  EXPECT_EXIT(ThrowUncaught(std::bad_alloc()), exits, "^adamant-test: std::bad_alloc; limits");
  EXPECT_EXIT((PrepareProcess(kProgram), std::terminate()),
              exits,
              "^adamant-test: a thread could not be started: out of memory or threads; limits");
}

// As gRPC does as its allocator gets none.
[[noreturn]] void AbortWithoutMemory() {
  PrepareProcess(kProgram);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
  setrlimit(RLIMIT_AS, &limit);
  std::abort();
}

TEST(ProcessDeathTest, ALibraryThatAbortsForLackOfMemoryIsToldLikewise) {
  EXPECT_EXIT(AbortWithoutMemory(),
              testing::ExitedWithCode(kExitCannotRun),
              "^adamant-test: out of memory; limits of memory");
  EXPECT_EXIT((PrepareProcess(kProgram), std::abort()), testing::KilledBySignal(SIGABRT), "^$");
}

TEST(ProcessDeathTest, OtherErrorsThatNobodyCatchesAbortAsEver) {
  const auto aborts = testing::KilledBySignal(SIGABRT);
  EXPECT_EXIT(ThrowUncaught(std::logic_error("a fault of ours")), aborts, "a fault of ours");
  EXPECT_EXIT(ThrowUncaught(Failed(std::errc::permission_denied)), aborts, "Permission denied");
}

TEST(ProcessTest, OnlyALackIsExplainedByLimits) {
  EXPECT_NE(std::string(HintAtLimits(std::bad_alloc())), "");
  EXPECT_EQ(std::string(HintAtLimits(std::runtime_error("x"))), "");
}

// Writes more than a file may have; what becomes of it.
[[noreturn]] void ExceedFileSize() {
  PrepareProcess(kProgram);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status = WriteFileAtomically(
      testing::TempDir() + "adamant_large_" + std::to_string(getpid()), std::string(8192, 'x'));
  const std::string text = status.ToString() + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(absl::IsResourceExhausted(status) ? 0 : 1);
}

TEST(ProcessDeathTest, AFileThatMayNotGrowIsAFullDisk) {
  EXPECT_EXIT(ExceedFileSize(), testing::ExitedWithCode(0), "File too large");
}

[[noreturn]] void BeginWithStack(rlim_t bytes) {
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  setrlimit(RLIMIT_STACK, &limit);
  PrepareProcess(kProgram);
  _exit(0);
}

TEST(ProcessDeathTest, AStackThatIsTooSmallIsNamed) {
  EXPECT_EXIT(BeginWithStack(100 << 10),
              testing::ExitedWithCode(kExitCannotRun),
              "the limit of the stack is too low \\(ulimit -s\\)");
  EXPECT_EXIT(BeginWithStack(8 << 20), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace adamant
