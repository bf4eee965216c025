#include "services/common/base/system/process.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace adamant {
namespace {

constexpr char kLimits[] =
    "; limits of memory, threads or processes are likely (ulimit -v, ulimit -u, or those of a "
    "control group: memory.max, pids.max)";

const char* program_name = "adamant";
std::terminate_handler otherwise = nullptr;

bool IsLack(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return true;
  }
  const auto* const failed = dynamic_cast<const std::system_error*>(&error);
  return failed != nullptr && (failed->code() == std::errc::resource_unavailable_try_again ||
                               failed->code() == std::errc::not_enough_memory);
}

// Without memory of its own: there may be none. No destructors: they may wait for other threads.
[[noreturn]] void Exit(const char* what, const char* why) {
  char line[512];
  const int length = std::snprintf(line, sizeof(line), "%s: %s%s\n", program_name, what, why);
  const auto bytes = std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof(line) - 1);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, bytes);
  _exit(kExitCannotRun);
}

// Of threads, too, whose stacks are as large as that.
void CheckStack() {
  constexpr rlim_t kFewestBytes = rlim_t{256} << 10;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kFewestBytes) {
    Exit("the limit of the stack is too low (ulimit -s)", "; 8192 is usual");
  }
}

[[noreturn]] void OnTerminate() {
  const std::exception_ptr current = std::current_exception();
  if (current == nullptr) {  // such an error destroyed a thread that runs, on its way
    ExitForLack(kNoThread);
  }
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& error) {
    if (IsLack(error)) {
      ExitForLack(error.what());
    }
  } catch (...) {  // not ours to explain
  }
  otherwise();
  std::abort();
}

// Whether even so much as malloc asks for when its heap cannot grow is refused.
bool IsMemoryExhausted() {
  constexpr std::size_t kBytes = 1 << 20;
  void* const got =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) {
    return true;
  }
  munmap(got, kBytes);
  return false;
}

// A thread that was joined counts among the user's until the system has released it.
void AwaitRelease(const std::vector<pid_t>& threads) {
  for (const pid_t thread : threads) {
    while (thread != 0 && tgkill(getpid(), thread, 0) == 0) {
      std::this_thread::yield();
    }
  }
}

// gRPC's allocator aborts without a word. Returning from here ends the process as ever.
void OnAbort(int /*signal*/) {
  if (IsMemoryExhausted()) {
    ExitForLack("out of memory");
  }
}

}  // namespace

void PrepareProcess(const char* program) {
  program_name = program;
  CheckStack();
  otherwise = std::set_terminate(OnTerminate);
  std::signal(SIGABRT, OnAbort);
  std::signal(SIGXFSZ, SIG_IGN);
}

void ExitForLack(const char* what) { Exit(what, kLimits); }

void CheckCanStartThreads(int count) {
  std::vector<pid_t> ids(static_cast<std::size_t>(count), 0);
  std::vector<std::thread> threads;
  threads.reserve(ids.size());
  std::latch tried(1);
  bool all = true;
  try {
    for (pid_t& id : ids) {
      threads.emplace_back([&id, &tried] {
        id = gettid();
        tried.wait();
      });
    }
  } catch (const std::exception&) {
    all = false;
  }
  tried.count_down();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (!all) {
    ExitForLack(kNoThread);
  }
  AwaitRelease(ids);
}

const char* HintAtLimits(const std::exception& error) { return IsLack(error) ? kLimits : ""; }

}  // namespace adamant
