#include "services/common/job/yaml/text_shapes.h"

#include <re2/re2.h>

#include <array>
#include <map>

#include "proto/adamant/v1/schema.pb.h"
#include "services/common/base/check.h"

namespace adamant::job {
namespace {

constexpr std::size_t kLongestLabel = 63;
constexpr std::size_t kLongestName = 253;
constexpr std::size_t kLongestKey = kLongestName + 1 + kLongestLabel;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kShaDigits = 64;

struct Row {
  v1::TextFormat format;
  TextShape shape;
};

// Sources: RFC 1123 and RFC 3986 as Kubernetes reads them (k8s.io/apimachinery, validation).
constexpr std::array kRows = {
    Row{v1::TEXT_FORMAT_ANY, {"", 1, kLongestText, "1 to 4096 characters"}},
    Row{v1::TEXT_FORMAT_DNS_LABEL,
        {"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
         1,
         kLongestLabel,
         "1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"}},
    Row{v1::TEXT_FORMAT_IDENTIFIER,
        {"[a-z][a-z0-9_]*",
         1,
         kLongestLabel,
         "1 to 63 of a-z, 0-9 and _, beginning with a letter"}},
    Row{v1::TEXT_FORMAT_DNS_SUBDOMAIN,
        {R"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)",
         1,
         kLongestName,
         "1 to 253 of a-z, 0-9, - and ., beginning and ending with a letter or digit"}},
    Row{v1::TEXT_FORMAT_HTTP_URL,
        {R"(https?://[^\s/?#]+([/?#]\S*)?)",
         1,
         kLongestText,
         "http:// or https:// with a host, at most 4096 characters"}},
    Row{v1::TEXT_FORMAT_SHA256,
        {"[0-9a-f]*", kShaDigits, kShaDigits, "64 hexadecimal digits in lower case"}},
    Row{v1::TEXT_FORMAT_LABEL_VALUE,
        {"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?",
         0,
         kLongestLabel,
         "up to 63 of a-z, A-Z, 0-9, -, _ and ., beginning and ending with a letter or digit"}},
    Row{v1::TEXT_FORMAT_TIME,
        {R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d))",
         1,
         kLongestLabel,
         "a moment such as 2024-02-29T12:00:00Z"}},
    Row{v1::TEXT_FORMAT_FREE, {"", 0, std::size_t{1} << 18, "up to 262144 characters"}},
};

constexpr TextShape kLabelKey = {
    R"(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)",
    1,
    kLongestKey,
    "up to 63 of a-z, A-Z, 0-9, -, _ and ., after a domain and / where there is one"};

// The domain of an annotation may have capital letters.
constexpr TextShape kAnnotationKey = {
    R"(([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)",
    kLabelKey.shortest,
    kLabelKey.longest,
    kLabelKey.meaning};

// By its text. Kept, as to compile one takes a hundred times as long as to match, and a manifest
// may have many thousands of labels.
const RE2& Compiled(std::string_view pattern) {
  static const auto& patterns = *[] {
    auto* const all = new std::map<std::string_view, RE2>;
    const auto add = [all](const TextShape& shape) {
      all->try_emplace(shape.pattern, re2::StringPiece(shape.pattern.data(), shape.pattern.size()));
    };
    for (const Row& row : kRows) {
      add(row.shape);
    }
    add(kLabelKey);
    add(kAnnotationKey);
    return all;
  }();
  const auto found = patterns.find(pattern);
  ADAMANT_CHECK(found != patterns.end(), "the pattern is that of a format");
  return found->second;
}

}  // namespace

const TextShape& ShapeOf(v1::TextFormat format) {
  for (const Row& row : kRows) {
    if (row.format == format) {
      return row.shape;
    }
  }
  ADAMANT_CHECK(false, "a format that manifests do not have");
}

const TextShape& KeyShapeOf(v1::TextFormat values) {
  return values == v1::TEXT_FORMAT_FREE ? kAnnotationKey : kLabelKey;
}

bool Matches(const TextShape& shape, std::string_view text) {
  if (text.size() < shape.shortest || text.size() > shape.longest) {
    return false;
  }
  return shape.pattern.empty() ||
         RE2::FullMatch(re2::StringPiece(text.data(), text.size()), Compiled(shape.pattern));
}

}  // namespace adamant::job
