#include "operator/kube/schema/crd/yaml_file.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "services/common/job/yaml/yaml_text.h"

namespace adamant::kube {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 100;

std::string Indent(std::size_t level) { return std::string(2 * level, ' '); }

/// The words of a line, broken where it would become too long.
std::vector<std::string> Wrap(const std::string& line, std::size_t columns) {
  std::vector<std::string> lines(1);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > columns) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

/// A text of several words or lines as a folded block; line breaks of its own are blank lines.
std::string Folded(const std::string& text, std::size_t level) {
  std::string block = " >-\n";
  std::istringstream paragraphs(text);
  std::string gap;
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    block += gap;
    for (const std::string& line : Wrap(paragraph, kColumns - 2 * level)) {
      block += Indent(level) + line + "\n";
    }
    gap = "\n";
  }
  return block;
}

/// Whether folding keeps the text: single spaces, no break or space at its ends.
bool CanBeFolded(const std::string& text) {
  constexpr std::size_t kShort = 60;
  return text.size() > kShort && text.find("  ") == std::string::npos &&
         text.find("\n ") == std::string::npos && text.find(" \n") == std::string::npos &&
         text.find("\n\n") == std::string::npos && text.find('\t') == std::string::npos &&
         text.find(' ') != std::string::npos && text.find_first_of(" \n") != 0 &&
         text.find_last_of(" \n") != text.size() - 1;
}

/// A value after "key:" or "-", up to and with its line break; its lines stand at `level`.
std::string Value(const Json& value, std::size_t level);

std::string Fields(const Json& object, std::size_t level) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    text += Indent(level) + job::YamlText(key) + ":" + Value(value, level + 1);
  }
  return text;
}

std::string Items(const Json& list, std::size_t level) {
  std::string text;
  for (const Json& item : list) {
    if (item.is_object() && !item.empty()) {
      std::string fields = Fields(item, level + 1);
      fields.replace(2 * level, 2, "- ");
      text += fields;
    } else {
      text += Indent(level) + "-" + Value(item, level + 1);
    }
  }
  return text;
}

std::string Value(const Json& value, std::size_t level) {
  if (value.is_structured() && !value.empty()) {
    return "\n" + (value.is_object() ? Fields(value, level) : Items(value, level));
  }
  if (!value.is_string()) {
    return " " + value.dump() + "\n";
  }
  const auto text = value.get<std::string>();
  return CanBeFolded(text) ? Folded(text, level) : " " + job::YamlText(text) + "\n";
}

}  // namespace

std::string ToYamlFile(const Json& object) { return Fields(object, 0); }

}  // namespace adamant::kube
