#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/job/yaml/diagnostic.h"

namespace adamant::job {

/// A place in a manifest, from 1; {0, 0} is the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
};

/// Positions of the fields in the manifest, by field path. What is absent was not given.
using Locations = std::map<std::string, Position, std::less<>>;

/// The place of a field, or of the nearest field around it that the manifest gives.
Position Locate(const Locations& locations, std::string_view field_path);

/// Collects the problems of one manifest. Threads: one thread at a time.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void Add(Position at, std::string field_path, std::string message, std::string hint = "");

  [[nodiscard]] bool empty() const { return list_.empty(); }

  /// Returns whether a problem names exactly this field.
  [[nodiscard]] bool Names(std::string_view field_path) const {
    return paths_.contains(field_path);
  }

  /// Returns whether a problem names this field or one inside it.
  [[nodiscard]] bool Within(std::string_view field_path) const;

  /// Hands the problems out, by line and column.
  std::vector<Diagnostic> Take();

 private:
  const std::string file_;
  std::vector<Diagnostic> list_;
  std::set<std::string, std::less<>> paths_;  // of list_
};

/// `text` in quotes, fit for a terminal: control characters escaped, cut after 60 bytes.
std::string Quote(std::string_view text);

/// The candidate that `text` is most likely a misspelling of, or a longer name for ("learningRate"
/// for "rate"); nullopt if none is near.
std::optional<std::string> Nearest(std::string_view text,
                                   const std::vector<std::string>& candidates);

/// "did you mean X?" for the nearest candidate, or "".
std::string DidYouMean(std::string_view text, const std::vector<std::string>& candidates);

/// "a, b, c".
std::string Join(const std::vector<std::string>& parts);

}  // namespace adamant::job
