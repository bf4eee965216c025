#include "operator/local/processes/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "services/common/base/exit_codes.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/base/system/process.h"
#include "services/common/storage/rocksdb/file_kinds.h"

// The header of glibc 2.36 forgets to say that these are C functions.
extern "C" {
#include <sys/pidfd.h>
}

namespace adamant::local {
namespace {

// Exit code of a child whose program could not be run, as in shells.
constexpr int kCannotRun = 127;

// Exit code of services for bad flags or configuration.

// Runs in the child between fork and exec: only calls that are safe there.
[[noreturn]] void RunChild(const std::vector<char*>& arguments, int log, int null, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(kCannotRun);  // the parent died before the line above took effect
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  execv(arguments[0], arguments.data());
  constexpr std::string_view kMessage = "cannot run the program\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kCannotRun);
}

/// As waitid, but tells what the process used, which glibc's does not.
int WaitFor(int descriptor, siginfo_t& info, rusage& used) {
  return static_cast<int>(
      syscall(SYS_waitid, P_PIDFD, descriptor, &info, WEXITED | WNOHANG, &used));
}

/// The last line of a log, which may be large, or as much of it as a message bears; "" if there is
/// none.
std::string LastLine(const std::filesystem::path& log) {
  constexpr std::streamoff kMost = 1024;
  if (!storage::CheckIsFile(log).ok()) {
    return "";
  }
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(file.tellg() - std::streampos(kMost), 0));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    last = line.empty() ? last : line;
  }
  constexpr std::size_t kMostTold = 300;
  return last.size() <= kMostTold ? last : last.substr(0, kMostTold) + " [...]";
}

}  // namespace

Processes::~Processes() {
  Processes::KillAll();
  for (const Child& child : children_) {
    waitpid(child.pid, nullptr, 0);
    close(child.descriptor);
  }
}

absl::Status Processes::Start(const Command& command) {
  const std::string& program = command.arguments.front();
  if (access(program.c_str(), X_OK) != 0) {
    return SystemError(errno, "cannot run", program);
  }
  std::error_code ignored;  // a folder of logs may be deleted at any time; open says what is wrong
  std::filesystem::create_directory(command.log.parent_path(), ignored);
  ADAMANT_RETURN_IF_ERROR(storage::CheckIsFile(command.log));
  const int log = open(command.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) {
    return SystemError(errno, "cannot open", command.log);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execv does not write to them
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    RunChild(arguments, log, null, parent);
  }
  const int error = errno;
  close(log);
  close(null);
  if (pid < 0) {
    return SystemError(error, "cannot start", program);
  }
  const int descriptor = pidfd_open(pid, 0);
  if (descriptor < 0) {
    const absl::Status status = SystemError(errno, "cannot watch", program);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return status;
  }
  children_.push_back({.pid = pid,
                       .descriptor = descriptor,
                       .id = command.id,
                       .generation = command.generation,
                       .log = command.log});
  return absl::OkStatus();
}

void Processes::Kill(controller::SlotId id, std::uint64_t generation) {
  for (Child& child : children_) {
    if (child.id == id && child.generation == generation) {
      child.killed = true;
      pidfd_send_signal(child.descriptor, SIGKILL, nullptr, 0);
    }
  }
}

void Processes::KillAll() {
  for (Child& child : children_) {
    child.killed = true;
    pidfd_send_signal(child.descriptor, SIGKILL, nullptr, 0);
  }
}

void Processes::AddDescriptors(std::vector<pollfd>& descriptors) const {
  for (const Child& child : children_) {
    descriptors.push_back({.fd = child.descriptor, .events = POLLIN, .revents = 0});
  }
}

std::vector<controller::ProcessExited> Processes::Reap() {
  std::vector<controller::ProcessExited> exits;
  std::erase_if(children_, [&](const Child& child) {
    siginfo_t info{};
    rusage used{};
    if (WaitFor(child.descriptor, info, used) != 0 || info.si_pid == 0) {
      return false;
    }
    close(child.descriptor);
    const bool exited = info.si_code == CLD_EXITED;
    exits.push_back({.id = child.id,
                     .generation = child.generation,
                     .how = Describe(child, info, used.ru_maxrss),
                     .bad_configuration = exited && (info.si_status == kBadConfiguration ||
                                                     info.si_status == kCannotRun),
                     .cannot_run = exited && info.si_status == kExitCannotRun,
                     .exit_code = exited ? info.si_status : 128 + info.si_status});
    return true;
  });
  return exits;
}

std::string Processes::Describe(const Child& child,
                                const siginfo_t& info,
                                std::int64_t peak_kilobytes) {
  if (info.si_code == CLD_EXITED && info.si_status == kCannotRun) {
    return "could not be run";
  }
  if (info.si_code == CLD_EXITED) {
    const std::string how = "exited with code " + std::to_string(info.si_status);
    const std::string why = info.si_status == kExitCannotRun ? LastLine(child.log) : "";
    return why.empty() ? how : how + ": " + why;
  }
  std::string how = "was killed by signal " + std::to_string(info.si_status);
  if (info.si_status == SIGKILL && !child.killed && oom_kills_.TakeOne()) {
    how += " as memory ran out (oom_kill); it had " + std::to_string(peak_kilobytes >> 10) +
           " MiB at most";
  }
  return how;
}

}  // namespace adamant::local
