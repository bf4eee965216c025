#include <string>
#include <string_view>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/job/semantics.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::job {
namespace {

constexpr std::string_view kNetwork = "spec.model.network";

/// The manifest's field for one that model::Problem names.
std::string FieldOf(const model::Problem& problem, const model::Net& net) {
  const bool of_layer = problem.layer >= 0;
  const std::string path =
      of_layer ? ElementPath(FieldPath(kNetwork, "layers"), static_cast<std::size_t>(problem.layer))
               : std::string(kNetwork);
  if (problem.field.empty()) {
    return path;
  }
  if (of_layer && problem.field == "dropout_rate") {
    return FieldPath(path, "rate");
  }
  if (of_layer && problem.field == "channels" &&
      net.layers[static_cast<std::size_t>(problem.layer)].kind ==
          model::LayerKind::kFullyConnected) {
    return FieldPath(path, "outputs");
  }
  return FieldPath(path, problem.field);
}

void CheckReference(const std::string& name, const Locations& given, Problems& problems) {
  if (!model::ReferenceNet(name).ok()) {
    const std::vector<std::string> names = model::ReferenceNetNames();
    problems.Add(Locate(given, "spec.model.reference"),
                 "spec.model.reference",
                 Quote(name) + " is not known (allowed: " + Join(names) + ")",
                 DidYouMean(name, names));
  }
}

}  // namespace

void ConnectLayers(v1::JobSpec& spec, const Locations& given) {
  if (!spec.model().has_network()) {
    return;
  }
  auto& layers = *spec.mutable_model()->mutable_network()->mutable_layers();
  for (int i = 0; i < layers.size(); ++i) {
    const std::string path = FieldPath(
        ElementPath(FieldPath(kNetwork, "layers"), static_cast<std::size_t>(i)), "inputs");
    if (layers[i].inputs().empty() && !given.contains(path)) {
      layers[i].add_inputs(i == 0 ? "input" : layers[i - 1].name());
    }
  }
}

std::optional<model::Graph> CheckModel(const v1::TrainingJob& job,
                                       const Locations& given,
                                       Problems& problems) {
  const v1::Model& definition = job.spec().model();
  if (definition.definition_case() == v1::Model::DEFINITION_NOT_SET ||
      problems.Within("spec.model")) {
    return std::nullopt;
  }
  if (definition.has_reference()) {
    CheckReference(definition.reference(), given, problems);
  }
  if (problems.Within("spec.model")) {
    return std::nullopt;
  }
  const model::Net net = NetOf(job);
  for (const model::Problem& problem : model::Check(net)) {
    const std::string path = FieldOf(problem, net);
    if (problem.field.empty() && problems.Within(path)) {
      continue;  // "leads nowhere" follows from what is wrong with the layer itself
    }
    problems.Add(Locate(given, path), path, problem.message);
  }
  if (problems.Within("spec.model")) {
    return std::nullopt;
  }
  absl::StatusOr<model::Graph> graph = model::BuildGraph(net);
  if (!graph.ok()) {
    problems.Add(Locate(given, "spec.model"), "spec.model", std::string(graph.status().message()));
    return std::nullopt;
  }
  if (graph->parameters.empty()) {
    const std::string path = FieldPath(kNetwork, "layers");
    problems.Add(Locate(given, path),
                 path,
                 "no layer has parameters, so there is nothing to train; add a FullyConnected or "
                 "Conv2d layer");
  }
  return *std::move(graph);
}

}  // namespace adamant::job
