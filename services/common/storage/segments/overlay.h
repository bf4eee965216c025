#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/storage/segments/unflushed.h"

namespace adamant::storage {

/// Content that a scan shows instead of the records, or between them: the keys with a changed or a
/// large value, and ranges of which no record counts.
/// Threads: one.
class Overlay {
 public:
  using Outcomes = std::map<std::string, Unflushed::Outcome, std::less<>>;

  /// `commits`: how often the records that it lies over had changed.
  explicit Overlay(std::uint64_t commits) : commits_(commits) {}

  void Set(const std::string& key, Unflushed::Outcome outcome);
  void Erase(const Unflushed::Range& range);

  [[nodiscard]] std::uint64_t commits() const { return commits_; }

  /// Returns whether the key is still to be shown from here.
  [[nodiscard]] bool Has(std::string_view key) const { return outcomes_.contains(key); }

  /// Returns whether the key's record lies in a range that was erased.
  [[nodiscard]] bool Hides(std::string_view key) const;

  /// Takes out the first key, if it comes before `end`; any without `end`. Empty: there is none.
  [[nodiscard]] Outcomes::node_type TakeBefore(std::optional<std::string_view> end);

 private:
  std::uint64_t commits_;
  Outcomes outcomes_;  // not yet shown
  std::vector<Unflushed::Range> erased_;
};

}  // namespace adamant::storage
