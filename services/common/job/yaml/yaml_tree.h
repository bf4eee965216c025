#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/job/yaml/problems.h"

namespace adamant::job {

struct YamlEntry;

/// A YAML value with its place.
struct YamlNode {
  enum class Kind {
    kNull,
    kScalar,
    kMap,
    kList,
    kRefused,  ///< already reported; readers pass over it
  };
  Kind kind = Kind::kNull;
  Position at;
  std::string text;                ///< kScalar
  bool quoted = false;             ///< kScalar: in quotes or as a block, thus a text
  std::vector<YamlEntry> entries;  ///< kMap, in order, keys unique
  std::vector<YamlNode> items;     ///< kList
};

/// A key of a map with its place, and the value.
struct YamlEntry {
  std::string key;
  Position at;
  YamlNode value;
};

/// Reads one document of at most 1 MB in UTF-8. Aliases, anchors, tags, duplicate keys, keys that
/// are not texts, more than 32 levels and further documents are problems; reading goes on after
/// them. Returns nullopt, with a problem, when there is no tree to go on with.
std::optional<YamlNode> ReadYaml(std::string_view text, Problems& problems);

}  // namespace adamant::job
