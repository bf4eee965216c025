#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Writes and reads for a job that the API does not let its operator do: what it has said of each,
/// or that it has said nothing, and since when. What has failed for a while is told to the user.
/// Threads: one.
class FailedWrites {
 public:
  static constexpr std::chrono::seconds kTimeout{3};  ///< from the first failure to its telling

  struct Failure {
    std::string what;  ///< begins with a verb: "create pod worker-0"
    std::string why;   ///< in the API's own words, or that it gives no answer
    bool unanswered = false;

    /// "cannot create pod worker-0: …"
    [[nodiscard]] std::string Text() const { return "cannot " + what + ": " + why; }

    /// "FailedCreate", or "UnansweredCreate": of an event, or a condition.
    [[nodiscard]] std::string Reason() const;
  };

  /// Takes the outcome of what was tried. An API that is away says nothing of the request: one
  /// without an answer counts from when the API has answered another.
  void Note(const std::string& what, const absl::Status& status, const Clock& clock);

  /// It is still to be done, and was not tried now.
  void Keep(const std::string& what) { noted_.insert(what); }

  /// The API has answered something.
  void NoteAnswer(Clock::TimePoint now);

  /// Something had no answer, and whether the API answers anything has to be asked.
  [[nodiscard]] bool NeedsAnswer() const;

  /// Returns when this had no answer last; before all times if it was answered since, or not tried.
  [[nodiscard]] Clock::TimePoint LastSilence(const std::string& what) const;

  /// All objects that there should be are tried from now on until EndPass, which forgets those of
  /// an earlier pass that this one did not try: they are not wanted any more. One that broke off is
  /// not `complete`, and forgets nothing.
  void BeginPass();
  void EndPass(bool complete);

  /// Returns what has failed for kTimeout, the same since the first time, by `what`; what was
  /// answered comes first.
  [[nodiscard]] std::vector<Failure> Lasting(Clock::TimePoint now) const;

  /// Returns true if an event should tell this: not yet told, numbers aside, since all went well.
  bool IsNews(const Failure& failure);

 private:
  struct Silence {
    Clock::TimePoint since{};  // or since when the API answers others
    Clock::TimePoint last{};
    std::string begin{};  // as users read times
  };
  struct Record {
    std::string why{};  // empty: it was never answered
    Clock::TimePoint since{};
    bool of_pass = false;
    std::optional<Silence> silence{};  // since its last answer
  };

  std::map<std::string, Record> failing_;  // by `what`
  Clock::TimePoint last_answer_ = Clock::TimePoint::min();
  bool in_pass_ = false;
  std::set<std::string> noted_;  // in this pass
  std::set<std::string> told_;
};

}  // namespace adamant::kube
