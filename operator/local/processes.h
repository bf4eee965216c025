#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/actions.h"

namespace adamant::local {

/// What to run for a slot.
struct Command {
  controller::MemberId id;
  std::uint64_t generation = 0;
  std::vector<std::string> arguments;  ///< the first is the program's path
  std::filesystem::path log;           ///< standard output and error are appended here
};

/// The child processes of a run. Each has a process group of its own, so that the terminal's Ctrl-C
/// does not reach it, and is killed by the kernel when the thread that started it ends: no orphan
/// is left even when this process is killed.
/// Threads: one, which must live as long as the children should (the main thread).
class Processes {
 public:
  Processes() = default;
  ~Processes();  // kills and awaits all
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Starts a process. Errors: those of the system, naming program or log.
  absl::Status Start(const Command& command);

  /// SIGKILL to the process of this slot and generation; nothing when it is gone.
  void Kill(controller::MemberId id, std::uint64_t generation);

  void KillAll();

  /// Adds what is readable when a process has ended.
  void AddDescriptors(std::vector<pollfd>& descriptors) const;

  /// The processes that have ended since the last call; never waits.
  std::vector<controller::ProcessExited> Reap();

  [[nodiscard]] bool empty() const { return children_.empty(); }

 private:
  struct Child {
    pid_t pid = 0;
    int descriptor = -1;  // pidfd: signals through it cannot hit another process
    controller::MemberId id;
    std::uint64_t generation = 0;
  };

  std::vector<Child> children_;
};

}  // namespace adamant::local
