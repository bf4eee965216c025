// What public libraries make of exported models: onnxruntime must compute what our engine computes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/base/system/files.h"
#include "services/common/export/onnx_model.h"
#include "services/common/export/safetensors.h"
#include "services/common/graph/context.h"
#include "services/common/tensor/shard_layout.h"
#include "tests/fakes/nets.h"

namespace adamant::exports {
namespace {

namespace fs = std::filesystem;

// The output of a command; fails the test when it fails.
std::string Output(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  while (!output.empty() && output.back() == '\n') {
    output.pop_back();
  }
  return output;
}

template <class T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<float> RandomWeights(const model::Graph& graph) {
  const ShardLayout layout(graph.parameters, 1);
  std::vector<float> weights(layout.elements());
  std::size_t at = 0;
  for (const Shard& shard : layout.shards()) {
    InitialiseShard(/*seed=*/7,
                    graph.parameters[shard.tensor],
                    shard,
                    std::span(weights).subspan(at, shard.size()));
    at += shard.size();
  }
  Rng rng(8);
  for (float& weight : weights) {  // biases start at 0
    weight += static_cast<float>(rng.Uniform(-0.05, 0.05));
  }
  return weights;
}

constexpr std::int64_t kImages = 8;

class PublicReadersTest : public testing::Test {
 protected:
  ~PublicReadersTest() override { fs::remove_all(folder_); }

  static fs::path NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-export-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  // Lets onnxruntime compute the logits of `images`; checks the safetensors file on the way.
  std::vector<float> LogitsOf(const std::vector<float>& images) {
    EXPECT_TRUE(WriteFileAtomically(folder_ / "images", BytesOf(images)).ok());
    const std::string python = Output(PYTHON_ENV_TOOL);
    const std::string words =
        Output(python + " " READ_MODEL_SCRIPT " " + (folder_ / "m.onnx").string() + " " +
               (folder_ / "m.safetensors").string() + " " + (folder_ / "images").string() + " " +
               (folder_ / "logits").string());
    EXPECT_EQ(words, "elements " + std::to_string(weights_.size()));
    const std::string bytes = ReadFile(folder_ / "logits", 1 << 20).value_or("");
    std::vector<float> logits(bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(logits.data()));
    return logits;
  }

  void Export(const Normalisation& normalisation) {
    const Metadata metadata = {{"job", "a test"}, {"accuracy", "0.5"}};
    ASSERT_TRUE(WriteOnnx(folder_ / "m.onnx", graph_, weights_, normalisation, metadata).ok());
    std::vector<TensorView> tensors;
    std::span<const float> rest(weights_);
    for (const Parameter& parameter : graph_.parameters) {
      const auto size = static_cast<std::size_t>(*ElementCount(parameter.shape));
      tensors.push_back({parameter.name, parameter.shape, rest.first(size)});
      rest = rest.subspan(size);
    }
    ASSERT_TRUE(WriteSafetensors(folder_ / "m.safetensors", tensors, metadata).ok());
  }

  // Compares the loss of every class on every image, which has all that the logits say.
  void ExpectSameLosses(const std::vector<float>& normalised, const std::vector<float>& logits) {
    auto context = graph::Context::Create(graph_, 1, graph::BackendKind::kReference, false);
    ASSERT_TRUE(context.ok()) << context.status();
    const auto classes = static_cast<std::size_t>(graph_.classes);
    ASSERT_EQ(logits.size(), kImages * classes);
    const std::size_t pixels = (*context)->input().size();
    for (std::size_t image = 0; image < kImages; ++image) {
      const auto begin = normalised.begin() + static_cast<std::ptrdiff_t>(image * pixels);
      std::copy_n(begin, pixels, (*context)->input().begin());
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        sum += std::exp(static_cast<double>(logits[image * classes + c]));
      }
      for (std::size_t c = 0; c < classes; ++c) {
        (*context)->labels()[0] = static_cast<std::int32_t>(c);
        const double loss = (*context)->Evaluate(1, weights_).loss_sum;
        EXPECT_NEAR(loss, std::log(sum) - logits[image * classes + c], 1e-4)
            << "image " << image << ", class " << c;
      }
    }
  }

  void TestNet(const model::Net& net) {
    graph_ = model::BuildGraph(net).value();
    weights_ = RandomWeights(graph_);
    Normalisation normalisation;
    for (std::int64_t channel = 0; channel < net.input[0]; ++channel) {
      normalisation.mean.push_back(33.3F + 10.0F * static_cast<float>(channel));
      normalisation.deviation.push_back(78.6F - 10.0F * static_cast<float>(channel));
    }
    Export(normalisation);
    const auto plane = static_cast<std::size_t>(net.input[1] * net.input[2]);
    const auto channels = static_cast<std::size_t>(net.input[0]);
    std::vector<float> images(kImages * channels * plane);
    std::vector<float> normalised(images.size());
    Rng rng(3);
    for (std::size_t i = 0; i < images.size(); ++i) {
      const std::size_t channel = i / plane % channels;
      images[i] = static_cast<float>(rng.Below(256));
      normalised[i] = (images[i] - normalisation.mean[channel]) / normalisation.deviation[channel];
    }
    ExpectSameLosses(normalised, LogitsOf(images));
  }

  const fs::path folder_ = NewFolder();
  model::Graph graph_;
  std::vector<float> weights_;
};

TEST_F(PublicReadersTest, AdamMnistComputesTheSame) {
  TestNet(model::ReferenceNet("adam-mnist").value());
}

TEST_F(PublicReadersTest, EveryLayerKindComputesTheSame) { TestNet(fakes::EveryLayerKind()); }

}  // namespace
}  // namespace adamant::exports
