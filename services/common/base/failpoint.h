#pragma once

#include "absl/status/status.h"

/// Failpoints: named places in the code where a test can make things go wrong. They exist only in
/// builds with the CMake option ADAMANT_FAILPOINTS; elsewhere the macros leave neither code nor
/// their names behind. docs/failpoints.md lists them all (tools/check_failpoints.py keeps it so).
///
///   ADAMANT_FAILPOINT("area/what");            what happens here: the process dies or pauses
///   ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("area/what"));       also: an error comes
///   back
///
/// Names are literals of lower-case words, "area/what", and each stands at one place only.
///
/// A process takes its actions from the environment when it reaches its first failpoint:
///
///   ADAMANT_FAILPOINTS="name=action[*count][@skip];name=action…"
///
///   crash              SIGKILL to itself
///   pause(ms)          sleeps this many milliseconds
///   error[(code)]      ADAMANT_FAILPOINT_STATUS returns an error: unavailable (when none is
///   given),
///                      data_loss or resource_exhausted
///   count              nothing
///
/// The first `skip` passes do nothing; the action then happens `count` times, by default at every
/// pass. The first time is logged as "failpoint". A mistake in the variable aborts the process, and
/// so does an error at a place that cannot return one.
///
/// Threads: any. Cost where nothing is asked of a failpoint: one relaxed atomic load.

#ifdef ADAMANT_FAILPOINTS

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace adamant::failpoint {

/// One place in the code. The macros make them; they live for ever.
class Site {
 public:
  explicit constexpr Site(const char* name) : name_(name) {}
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  void Pass() {
    if (watched_.load(std::memory_order_relaxed)) [[unlikely]] {
      PassWatched();
    }
  }

  absl::Status PassWithStatus() {
    if (watched_.load(std::memory_order_relaxed)) [[unlikely]] {
      return PassWatchedWithStatus();
    }
    return absl::OkStatus();
  }

 private:
  friend class Registry;

  void PassWatched();
  absl::Status PassWatchedWithStatus();

  const char* const name_;
  std::atomic<bool> watched_{true};  // until the registry knows that nothing is asked of it
  bool registered_ = false;          // guarded by the registry's mutex
};

/// Replaces the actions of this process by `actions`, written as in the environment variable, and
/// the counts of Passes by 0. Error: InvalidArgument, quoting what is wrong; nothing changes then.
absl::Status SetActions(std::string_view actions);

/// Returns how often a failpoint was passed since it was given actions; 0 for one without actions.
std::uint64_t Passes(std::string_view name);

/// The failpoints that this process has reached, sorted.
std::vector<std::string> Reached();

/// As long as it lives, every failpoint that its thread passes calls `handler` with its name
/// instead of doing what the actions say; an error is returned by the failpoint. This is how a
/// simulator learns that a process should die here. Handlers nest; the innermost is called, without
/// any lock. Threads: lives and dies on one thread.
class ScopedHandler {
 public:
  using Handler = std::function<absl::Status(std::string_view name)>;

  explicit ScopedHandler(Handler handler);
  ~ScopedHandler();
  ScopedHandler(const ScopedHandler&) = delete;
  ScopedHandler& operator=(const ScopedHandler&) = delete;

 private:
  friend class Registry;

  const Handler handler_;
  ScopedHandler* const outer_;
};

}  // namespace adamant::failpoint

#define ADAMANT_FAILPOINT(name)                                     \
  do {                                                              \
    static constinit ::adamant::failpoint::Site adamant_site(name); \
    adamant_site.Pass();                                            \
  } while (false)

#define ADAMANT_FAILPOINT_STATUS(name)                              \
  ([]() -> ::absl::Status {                                         \
    static constinit ::adamant::failpoint::Site adamant_site(name); \
    return adamant_site.PassWithStatus();                           \
  }())

#else

#define ADAMANT_FAILPOINT(name) static_cast<void>(0)
#define ADAMANT_FAILPOINT_STATUS(name) ::absl::OkStatus()

#endif
