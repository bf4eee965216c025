#pragma once

#include <string>

namespace adamant::local {

/// Makes SIGINT, SIGTERM, SIGHUP and SIGPIPE wait until they are taken here. Call it first in main,
/// before any thread starts.
void BlockStopSignals();

/// Delivers these signals as readable bytes. Threads: one, and SIGPIPE only of what it writes
/// itself.
class SignalPipe {
 public:
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  /// For poll; this keeps it open.
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// The next signal that has arrived; 0 if there is none.
  [[nodiscard]] int Take() const;

  /// For people: "SIGINT (Ctrl-C)".
  static std::string NameOf(int signal);

 private:
  const int descriptor_;
};

}  // namespace adamant::local
