#include "operator/kube_client/auth/kubeconfig_fields.h"

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/base64.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

bool IsSet(const YAML::Node& node) { return node.IsDefined() && !node.IsNull(); }

YAML::Node MapOrEmpty(const YAML::Node& node) {
  return IsSet(node) && node.IsMap() ? node : YAML::Node(YAML::NodeType::Map);
}

kube::Json ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") {
    return text;  // quoted
  }
  if (bool flag = false; YAML::convert<bool>::decode(node, flag)) {
    return flag;
  }
  const kube::Json number = kube::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return number.is_number() ? number : kube::Json(text);
}

/// Stops at `budget` nodes: aliases can make a short text arbitrarily large, or endless.
kube::Json ToJson(const YAML::Node& node, std::size_t& budget) {
  if (budget == 0 || !IsSet(node)) {
    return nullptr;
  }
  --budget;
  if (node.IsScalar()) {
    return ScalarToJson(node);
  }
  kube::Json result = node.IsMap() ? kube::Json::object() : kube::Json::array();
  for (const auto& element : node) {
    if (node.IsMap()) {
      const std::string name = element.first.IsScalar() ? element.first.Scalar() : "";
      result[name] = ToJson(element.second, budget);
    } else {
      result.push_back(ToJson(element, budget));
    }
  }
  return result;
}

}  // namespace

Fields::Fields(const YAML::Node& node, const std::filesystem::path& file, absl::Status& problem)
    : node_(MapOrEmpty(node)),
      file_(file),
      line_(IsSet(node) ? node.Mark().line + 1 : 1),
      problem_(&problem) {
  CheckIsMap(node);
}

Fields::Fields(const YAML::Node& node, const Fields& parent, std::string path)
    : node_(MapOrEmpty(node)),
      file_(parent.file_),
      path_(std::move(path)),
      line_(IsSet(node) ? node.Mark().line + 1 : parent.line_),
      problem_(parent.problem_) {
  CheckIsMap(node);
}

void Fields::CheckIsMap(const YAML::Node& node) const {
  if (IsSet(node) && !node.IsMap()) {
    Refuse("", "is not a map of fields");
  }
}

YAML::Node Fields::Get(const std::string& name) const {
  const YAML::Node& map = node_;  // not const, reading would add the field
  return map[name];
}

std::string Fields::PathOf(const std::string& name) const {
  return path_.empty() || name.empty() ? path_ + name : path_ + "." + name;
}

void Fields::Refuse(const std::string& name, const std::string& what) const {
  const YAML::Node field = Get(name);
  const int line = field.IsDefined() ? field.Mark().line + 1 : line_;
  const std::string path = PathOf(name);
  problem_->Update(absl::InvalidArgumentError(file_.string() + ":" + std::to_string(line) + ": " +
                                              (path.empty() ? "the file" : path) + ": " + what));
}

bool Fields::Has(const std::string& name) const {
  const YAML::Node field = Get(name);
  return IsSet(field) && !(field.IsScalar() && field.Scalar().empty());
}

std::string Fields::Text(const std::string& name) const {
  const YAML::Node field = Get(name);
  if (!IsSet(field)) {
    return "";
  }
  if (!field.IsScalar()) {
    Refuse(name, "is not a text");
    return "";
  }
  return field.Scalar();
}

bool Fields::Flag(const std::string& name) const {
  const std::string text = Text(name);
  if (!text.empty() && text != "true" && text != "false") {
    Refuse(name, "is neither true nor false");
  }
  return text == "true";
}

std::string Fields::Decoded(const std::string& name) const {
  absl::StatusOr<std::string> bytes = DecodeBase64(Text(name));
  if (!bytes.ok()) {
    Refuse(name,
           std::string(bytes.status().message()) +
               "; encode the file's content by `base64 -w0`, or name the file without -data");
    return "";
  }
  return *std::move(bytes);
}

std::filesystem::path Fields::File(const std::string& name) const {
  const std::string path = Text(name);
  if (path.empty()) {
    return {};
  }
  return (std::filesystem::absolute(file_).parent_path() / path).lexically_normal();
}

std::vector<std::string> Fields::Texts(const std::string& name) const {
  std::vector<std::string> texts;
  const YAML::Node list = Get(name);
  if (!IsSet(list)) {
    return texts;
  }
  if (!list.IsSequence()) {
    Refuse(name, "is not a list");
    return texts;
  }
  for (const YAML::Node& element : list) {
    if (!element.IsScalar()) {
      Refuse(name, "holds what is not a text");
      return texts;
    }
    texts.push_back(element.Scalar());
  }
  return texts;
}

std::string Fields::Json(const std::string& name) const {
  std::size_t budget = 10'000;
  return DumpJson(ToJson(Get(name), budget));
}

Fields Fields::Under(const std::string& name) const { return {Get(name), *this, PathOf(name)}; }

std::vector<Fields> Fields::Elements(const std::string& name) const {
  std::vector<Fields> elements;
  const YAML::Node list = Get(name);
  if (!IsSet(list)) {
    return elements;
  }
  if (!list.IsSequence()) {
    Refuse(name, "is not a list");
    return elements;
  }
  for (const YAML::Node& element : list) {
    elements.push_back(
        {element, *this, PathOf(name) + "[" + std::to_string(elements.size()) + "]"});
  }
  return elements;
}

}  // namespace adamant::kube
