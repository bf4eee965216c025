#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/rng.h"

namespace adamant::kube {

/// Next steps of what keeps a copy of a collection up to date: the protocol of list and watch,
/// without the requests.
///
///   (no version) --WatchList, or a list where that is refused--> (version) --watch--> (version) …
///
/// A watch that ends or breaks is resumed after the last version seen, at once if it had worked; a
/// version that is too old, or a stream that makes no sense, means a list again. Failures wait 0.8
/// s, then twice as long each time up to 10 s, times 1 to 2 by chance; two minutes without one
/// start over. While it waits, its user acts on old objects, and makes pods of a job that is gone:
/// so not for longer, though client-go waits up to 30 s. A watch that had worked, but broke within
/// `kFlaky`, is a failure too, which waits for at most 3.2 s, times 1 to 2: where connections break
/// every second, new ones at once would cost both sides a handshake a second each, and hear little
/// more.
///
/// A connection whose other end is gone says nothing, and neither does a watch on which nothing
/// happens, but for a bookmark a minute. So a watch that has been silent for `kIdle` is ended and
/// resumed, which costs the server little and finds any broken path, whatever is on it. As
/// bookmarks would never come that way and the version would grow old, a watch that follows a
/// silent one asks to be ended after `kQuietLifetime`: before it ends a watch, the server sends a
/// bookmark. Threads: one.
class WatchPlan {
 public:
  static constexpr std::chrono::seconds kIdle{25};
  static constexpr std::chrono::seconds kQuietLifetime{20};
  static constexpr std::chrono::seconds kFlaky{10};
  static constexpr std::chrono::seconds kShortestLifetime{300};
  static constexpr std::chrono::seconds kLongestLifetime{600};

  enum class Step { kWatchList, kList, kWatch };

  struct Action {
    Step step;
    std::string resource_version;  ///< of kWatch
    std::chrono::seconds lifetime{0};
  };

  WatchPlan(const Clock& clock, std::uint64_t seed);

  /// Returns what to do now. Tell what came of it by the members below, Ended last.
  Action Next();

  /// The objects are complete as of `resource_version`.
  void OnComplete(std::string resource_version);

  /// A watch has told of a change, or by a bookmark that there is none, up to `resource_version`.
  /// False: that is older than what was seen before (somebody has restored an old state of the
  /// API's storage), or missing; the watch makes no sense any more.
  bool OnChange(std::string resource_version);
  bool OnBookmark(std::string resource_version);

  /// The step has ended; returns the time to wait before the next.
  Clock::Duration Ended(const absl::Status& status);

  [[nodiscard]] const std::string& resource_version() const { return version_; }

 private:
  static constexpr std::chrono::milliseconds kLongestBackOff{10'000};

  bool Advance(std::string version);
  void Relist() { version_.clear(); }
  Clock::Duration EndedWatchList(const absl::Status& status);
  Clock::Duration EndedWatch(const absl::Status& status);
  Clock::Duration BackOff(std::chrono::milliseconds longest = kLongestBackOff);

  const Clock& clock_;
  Rng rng_;
  Step step_ = Step::kWatchList;
  std::string version_;     // empty: a list is needed
  bool watch_list_ = true;  // the server may know WatchList
  bool changed_ = false;    // the watch has told of a change
  bool heard_ = false;      // … or of anything
  bool quiet_ = false;      // the last watch has not
  int failures_ = 0;
  Clock::TimePoint began_{};   // the step
  Clock::TimePoint failed_{};  // last
};

}  // namespace adamant::kube
