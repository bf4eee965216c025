#include "services/common/job/yaml/problems.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace adamant::job {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(
      lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, letter case
/// aside.
/// Source: Damerau 1964, the restricted form (optimal string alignment).
std::size_t EditDistance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

Position Locate(const Locations& locations, std::string_view field_path) {
  while (true) {
    if (const auto found = locations.find(field_path); found != locations.end()) {
      return found->second;
    }
    if (field_path.empty()) {
      return {};
    }
    const std::size_t cut = field_path.find_last_of(".[");
    field_path = field_path.substr(0, cut == std::string_view::npos ? 0 : cut);
  }
}

void Problems::Add(Position at, std::string field_path, std::string message, std::string hint) {
  paths_.insert(field_path);
  list_.push_back(
      {file_, at.line, at.column, std::move(field_path), std::move(message), std::move(hint)});
}

bool Problems::Within(std::string_view field_path) const {
  const auto begins = [&](char separator) {
    const std::string prefix = std::string(field_path) + separator;
    const auto at = paths_.lower_bound(prefix);
    return at != paths_.end() && at->compare(0, prefix.size(), prefix) == 0;
  };
  return Names(field_path) || begins('.') || begins('[');
}

std::vector<Diagnostic> Problems::Take() {
  std::stable_sort(list_.begin(), list_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  paths_.clear();
  return std::exchange(list_, {});
}

std::string Quote(std::string_view text) {
  constexpr std::size_t kMost = 60;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t end = std::min(text.size(), kMost);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
    --end;  // not in the middle of a UTF-8 sequence
  }
  std::string quoted = "\"";
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 0xf];
    } else {
      quoted += c;
    }
  }
  return quoted + (end < text.size() ? "...\"" : "\"");
}

std::optional<std::string> Nearest(std::string_view text,
                                   const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 64;
  if (text.size() > kLongest) {
    return std::nullopt;
  }
  std::optional<std::string> nearest;
  std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(text, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  if (nearest) {
    return nearest;
  }
  constexpr std::size_t kShortest = 4;
  const std::string name = Lower(text);
  for (const std::string& candidate : candidates) {
    const std::string word = Lower(candidate);
    if (word.size() >= kShortest && (name.ends_with(word) || name.starts_with(word))) {
      return candidate;
    }
  }
  return std::nullopt;
}

std::string DidYouMean(std::string_view text, const std::vector<std::string>& candidates) {
  const std::optional<std::string> nearest = Nearest(text, candidates);
  return nearest ? "did you mean " + *nearest + "?" : "";
}

std::string Join(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) {
    joined += (joined.empty() ? "" : ", ") + part;
  }
  return joined;
}

}  // namespace adamant::job
