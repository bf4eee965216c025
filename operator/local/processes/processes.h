#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/local/processes/control_group.h"
#include "operator/local/processes/launcher.h"

namespace adamant::local {

/// The child processes of a run. Each has a process group of its own, so that the terminal's Ctrl-C
/// does not reach it, and is killed by the kernel when the thread that started it ends: no orphan
/// is left even when this process is killed.
/// Threads: one, which must live as long as the children should (the main thread).
class Processes final : public Launcher {
 public:
  /// `root` has the system's folders `proc` and `sys`.
  explicit Processes(const std::filesystem::path& root = "/") : oom_kills_(root) {}
  ~Processes() override;  // kills and awaits all
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  absl::Status Start(const Command& command) override;
  void Kill(controller::SlotId id, std::uint64_t generation) override;
  void KillAll() override;
  void AddDescriptors(std::vector<pollfd>& descriptors) const override;
  std::vector<controller::ProcessExited> Reap() override;

  [[nodiscard]] bool empty() const { return children_.empty(); }

 private:
  struct Child {
    pid_t pid = 0;
    int descriptor = -1;  // pidfd: signals through it cannot hit another process
    controller::SlotId id;
    std::uint64_t generation = 0;
    std::filesystem::path log;
    bool killed = false;  // by us
  };

  [[nodiscard]] std::string Describe(const Child& child,
                                     const siginfo_t& info,
                                     std::int64_t peak_kilobytes);

  std::vector<Child> children_;
  OomKillCounter oom_kills_;
};

}  // namespace adamant::local
