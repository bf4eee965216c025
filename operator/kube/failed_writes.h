#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// What of a job the API does not let its operator write, or read: what it has said of each, and
/// since when. What has failed for a while is told to the user. Threads: one.
class FailedWrites {
 public:
  static constexpr std::chrono::seconds kPatience{3};  ///< from the first failure to its telling

  struct Failure {
    std::string what;  ///< begins with a verb: "create pod worker-0"
    std::string why;   ///< in the API's own words

    /// "cannot create pod worker-0: …"
    [[nodiscard]] std::string Text() const { return "cannot " + what + ": " + why; }

    /// "FailedCreate": of an event, or a condition.
    [[nodiscard]] std::string Reason() const;
  };

  /// What was tried has ended so. An API that does not answer says nothing of the request.
  void Note(const std::string& what, const absl::Status& status, Clock::TimePoint now);

  /// All objects that there should be are tried from now on until EndPass, which forgets those of
  /// an earlier pass that this one did not try: they are not wanted any more. One that broke off is
  /// not `complete`, and forgets nothing.
  void BeginPass();
  void EndPass(bool complete);

  /// What has failed for kPatience, the same since the first time, by `what`.
  [[nodiscard]] std::vector<Failure> Lasting(Clock::TimePoint now) const;

  /// Whether to tell of this in an event: not yet told, numbers in it aside, since all went well.
  bool IsNews(const Failure& failure);

 private:
  struct Record {
    std::string why;
    Clock::TimePoint since{};
    bool of_pass = false;
  };

  std::map<std::string, Record> failing_;  // by `what`
  bool in_pass_ = false;
  std::set<std::string> noted_;  // in this pass
  std::set<std::string> told_;
};

}  // namespace adamant::kube
