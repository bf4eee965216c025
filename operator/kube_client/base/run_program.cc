#include "operator/kube_client/base/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string_view>

#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

// The header of glibc 2.36 forgets to say that these are C functions.
extern "C" {
#include <sys/pidfd.h>
}

namespace adamant::kube {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A file descriptor, closed at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const { return number_; }
  void Set(int number) { number_ = number; }
  void Close() {
    if (number_ >= 0) {
      close(number_);
      number_ = -1;
    }
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor from;
  Descriptor to;

  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return false;
    }
    from.Set(ends[0]);
    to.Set(ends[1]);
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }
};

/// "NAME=value" for all our variables and those that are added, which go before ours.
std::vector<std::string> Variables(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : added) {
    variables.push_back(name);
    variables.back().append("=").append(value);
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool replaced = std::any_of(added.begin(), added.end(), [text](const auto& other) {
      return text.starts_with(other.first) && text.substr(other.first.size()).starts_with('=');
    });
    if (!replaced) {
      variables.emplace_back(text);
    }
  }
  return variables;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) {
    pointers.push_back(const_cast<char*>(string.c_str()));  // exec does not write to them
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// Starts the program in a process group of its own.
absl::StatusOr<pid_t> Spawn(const Subprocess& program, int output, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const std::vector<std::string> variables = Variables(program.environment);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid,
                                 program.arguments.front().c_str(),
                                 &actions,
                                 &attributes,
                                 Pointers(program.arguments).data(),
                                 Pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return SystemError(error, "cannot run", program.arguments.front());
  }
  return pid;
}

/// Appends what can be read; closes `from` at its end.
absl::Status Drain(Descriptor& from, std::size_t limit, std::string& text) {
  std::array<char, 16384> block{};
  while (true) {
    const ssize_t count = read(from.get(), block.data(), block.size());
    if (count > 0) {
      text.append(block.data(), static_cast<std::size_t>(count));
      if (text.size() > limit) {
        return absl::ResourceExhaustedError("it printed more than " + std::to_string(limit) +
                                            " bytes");
      }
    } else if (count == 0) {
      from.Close();
      return absl::OkStatus();
    } else if (errno != EINTR) {
      return absl::OkStatus();  // nothing there now
    }
  }
}

/// Reads both pipes until the program has ended, which makes `ended` readable.
absl::Status ReadUntilEnd(const Subprocess& program,
                          const Descriptor& ended,
                          const Descriptor& cancelled,
                          std::array<Descriptor*, 2> pipes,
                          ProgramResult& result) {
  const auto deadline = SteadyClock::now() + program.timeout;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    // poll passes over descriptors below 0.
    std::array<pollfd, 4> polled{{{.fd = ended.get(), .events = POLLIN, .revents = 0},
                                  {.fd = cancelled.get(), .events = POLLIN, .revents = 0},
                                  {.fd = pipes[0]->get(), .events = POLLIN, .revents = 0},
                                  {.fd = pipes[1]->get(), .events = POLLIN, .revents = 0}}};
    if (poll(polled.data(), polled.size(), static_cast<int>(left < 0 ? 0 : left)) == 0) {
      return absl::DeadlineExceededError("it has not ended within " +
                                         std::to_string(program.timeout.count() / 1000) + " s");
    }
    if (polled[1].revents != 0) {
      return absl::CancelledError("cancelled");
    }
    if (pipes[0]->get() >= 0) {
      ADAMANT_RETURN_IF_ERROR(Drain(*pipes[0], program.max_output, result.output));
    }
    if (pipes[1]->get() >= 0) {
      ADAMANT_RETURN_IF_ERROR(Drain(*pipes[1], program.max_output, result.errors));
    }
    if (polled[0].revents != 0) {
      return absl::OkStatus();
    }
  }
}

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const Subprocess& program,
                                         const Cancellation& cancellation) {
  const Descriptor cancelled(eventfd(0, EFD_CLOEXEC));
  Pipe output;
  Pipe errors;
  if (cancelled.get() < 0 || !output.Open() || !errors.Open()) {
    return SystemError(errno, "cannot open pipes for", program.arguments.front());
  }
  ADAMANT_ASSIGN_OR_RETURN(const pid_t pid, Spawn(program, output.to.get(), errors.to.get()));
  output.to.Close();
  errors.to.Close();
  const Descriptor ended(pidfd_open(pid, 0));
  ProgramResult result;
  absl::Status status = ended.get() < 0
                            ? SystemError(errno, "cannot watch", program.arguments.front())
                            : absl::OkStatus();
  if (status.ok()) {
    const std::shared_ptr<void> guard = cancellation.OnCancel([&cancelled] {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = write(cancelled.get(), &one, sizeof(one));
    });
    status = ReadUntilEnd(program, ended, cancelled, {&output.from, &errors.from}, result);
  }
  kill(-pid, SIGKILL);  // before waitpid, while the number is certainly theirs
  int how = 0;
  while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
  }
  ADAMANT_RETURN_IF_ERROR(status);
  result.exit_code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  return result;
}

}  // namespace adamant::kube
