#pragma once

#include <poll.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"

namespace adamant::local {

/// Program to run for a slot.
struct Command {
  controller::SlotId id;
  std::uint64_t generation = 0;
  std::vector<std::string> arguments;  ///< the first is the program's path
  std::filesystem::path log;           ///< standard output and error are appended here
};

/// Starts and ends the processes of a run, wherever they are.
/// Threads: one.
class Launcher {
 public:
  virtual ~Launcher() = default;

  /// The processes that an earlier run's launcher has started and that live still.
  [[nodiscard]] virtual std::vector<controller::StartProcess> Survivors() const { return {}; }

  /// Starts a process. Errors: those of the system, naming program or log.
  virtual absl::Status Start(const Command& command) = 0;

  /// SIGKILL to the process of this slot and generation; nothing when it is gone.
  virtual void Kill(controller::SlotId id, std::uint64_t generation) = 0;

  virtual void KillAll() = 0;

  /// Adds what is readable when a process has ended.
  virtual void AddDescriptors(std::vector<pollfd>& descriptors) const = 0;

  /// The processes that have ended since the last call; never waits.
  virtual std::vector<controller::ProcessExited> Reap() = 0;
};

}  // namespace adamant::local
