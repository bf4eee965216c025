#pragma once

#include <yaml-cpp/node/node.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace adamant::kube {

/// The fields of one map in a kubeconfig. A field that is missing or null reads as empty; one of
/// another kind than asked for is a problem: "FILE:LINE: path: what is wrong", of which the first
/// is kept. Private to kubeconfig.cc. Threads: one.
class Fields {
 public:
  /// The file's outermost map. `problem` must outlive this and its parts.
  Fields(const YAML::Node& node, const std::filesystem::path& file, absl::Status& problem);

  [[nodiscard]] std::string file() const { return file_.string(); }

  /// Returns whether something stands there.
  [[nodiscard]] bool Has(const std::string& name) const;
  [[nodiscard]] std::string Text(const std::string& name) const;
  [[nodiscard]] bool Flag(const std::string& name) const;
  /// The bytes of a field in base64.
  [[nodiscard]] std::string Decoded(const std::string& name) const;
  /// A path, made absolute against the file's folder.
  [[nodiscard]] std::filesystem::path File(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> Texts(const std::string& name) const;
  /// Whatever stands there, as JSON.
  [[nodiscard]] std::string Json(const std::string& name) const;
  [[nodiscard]] Fields Under(const std::string& name) const;
  [[nodiscard]] std::vector<Fields> Elements(const std::string& name) const;

  /// Reports the field `name`.
  void Refuse(const std::string& name, const std::string& what) const;

 private:
  Fields(const YAML::Node& node, const Fields& parent, std::string path);

  void CheckIsMap(const YAML::Node& node) const;
  [[nodiscard]] YAML::Node Get(const std::string& name) const;
  [[nodiscard]] std::string PathOf(const std::string& name) const;

  YAML::Node node_;  // a map, perhaps empty
  std::filesystem::path file_;
  std::string path_;
  int line_;
  absl::Status* problem_;
};

}  // namespace adamant::kube
