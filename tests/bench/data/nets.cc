#include "tests/bench/data/nets.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/job/job.h"
#include "services/common/job/yaml/yaml_tree.h"
#include "services/common/model/analysis.h"

namespace adamant::bench {
namespace {

constexpr std::uint64_t kMaxManifestBytes = 1 << 20;

absl::StatusOr<model::Net> NetOfFile(const std::string& path) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxManifestBytes));
  job::Problems problems(path);
  const std::optional<job::YamlNode> tree = job::ReadYaml(text, problems);
  job::ParseResult result;
  if (tree) {
    result = job::ParseObject(*tree, problems);
  } else {
    result.problems = problems.Take();
  }
  if (result.job != nullptr) {
    return job::NetOf(*result.job);
  }
  std::string message = "not a job:";
  for (const job::Diagnostic& problem : result.problems) {
    message += "\n" + job::Format(problem);
  }
  return absl::InvalidArgumentError(message);
}

nlohmann::json Pair(const model::Extent2d& extent) { return {extent.height, extent.width}; }

}  // namespace

absl::StatusOr<model::Net> LoadNet(const std::string& name) {
  return name.ends_with(".yaml") ? NetOfFile(name) : model::ReferenceNet(name);
}

nlohmann::json Describe(const model::Graph& graph) {
  nlohmann::json layers = nlohmann::json::array();
  for (const model::Graph::Node& node : graph.nodes) {
    layers.push_back({{"kind", model::internal::KindName(node.layer.kind)},
                      {"inputs", node.inputs},
                      {"output", node.output},
                      {"kernel", Pair(node.layer.kernel)},
                      {"stride", Pair(node.layer.stride)},
                      {"padding", Pair(node.layer.padding)},
                      {"dilation", Pair(node.layer.dilation)},
                      {"groups", node.layer.groups},
                      {"rate", node.layer.dropout_rate}});
  }
  return {{"input", graph.input},
          {"classes", graph.classes},
          {"flop_per_example", graph.flop_per_example},
          {"layers", std::move(layers)}};
}

}  // namespace adamant::bench
