// The check that a model.onnx is whole.

#include <onnx/onnx_pb.h>

#include "services/common/base/check.h"
#include "services/common/export/onnx_model.h"
#include "services/common/tensor/shard_layout.h"
#include "tests/fakes/nets.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/silent_protobuf.h"

namespace adamant::fuzz {
namespace {

// The checksum is the first property. Files of others lack it, and mutations do not get past it.
std::string WithoutChecksum(const std::string& file) {
  onnx::ModelProto model;
  ADAMANT_CHECK(model.ParseFromString(file), "what was written can be read");
  model.mutable_metadata_props()->DeleteSubrange(0, 1);
  return model.SerializeAsString();
}

}  // namespace

std::vector<std::string> Seeds() {
  const auto graph = model::BuildGraph(fakes::EveryLayerKind());
  ADAMANT_CHECK(graph.ok(), "the net is one");
  const std::vector<float> weights(ShardLayout(graph->parameters, 1).elements(), 0.5F);
  const exports::Normalisation normalisation{std::vector<float>(3, 33), std::vector<float>(3, 78)};
  const auto file = exports::EncodeOnnx(*graph, weights, normalisation, {{"job", "digits"}});
  ADAMANT_CHECK(file.ok(), "the net can be written");
  return {*file, WithoutChecksum(*file)};
}

bool Try(std::string_view input) {
  static ScratchFile file;
  file.Set(input);
  return exports::CheckOnnx(file.path()).ok();
}

}  // namespace adamant::fuzz
