#pragma once

#include <exception>

namespace adamant {

/// Exit code of a program that this machine does not let run; docs/cli.md has all codes.
constexpr int kExitCannotRun = 4;

/// Sets the process up, as each program of ours does first of all. From then on
/// - a lack of memory or threads that nobody has caught, or for which a library aborts, ends the
///   process with one line on standard error and kExitCannotRun, where it would abort;
/// - a file that would exceed the limit of file sizes (`ulimit -f`) cannot be written (EFBIG),
///   where SIGXFSZ would kill the process.
/// A stack that is too small for any program of ours (`ulimit -s`) ends it so at once, where it
/// would overflow.
/// `program` is its name in that line, and lives as long as the process. Threads: before others.
void PrepareProcess(const char* program);

/// Message for a thread that could not be started, where nothing more is known.
constexpr char kNoThread[] = "a thread could not be started: out of memory or threads";

/// Ends the process as PrepareProcess says, for `what` is lacking. Threads: any.
[[noreturn]] void ExitForLack(const char* what);

/// Ends the process so unless `count` threads can run at once beside those that do: for a library
/// that does not see that a thread of its own has not started, and later waits for it. The threads
/// have ended when this returns. Threads: any.
void CheckCanStartThreads(int count);

/// Returns what may be the reason of such a lack, to be put behind what() of the error; "" for any
/// other error. Allocates nothing.
const char* HintAtLimits(const std::exception& error);

}  // namespace adamant
