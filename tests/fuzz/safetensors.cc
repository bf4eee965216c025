// A safetensors file.

#include "services/common/export/safetensors.h"

#include "services/common/base/check.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

using exports::TensorFile;
using exports::TensorView;

std::string Encoded(const TensorFile& file) {
  std::vector<TensorView> views;
  for (const exports::Tensor& tensor : file.tensors) {
    views.push_back({.name = tensor.name, .shape = tensor.shape, .values = tensor.values});
  }
  const auto bytes = EncodeSafetensors(views, file.metadata);
  ADAMANT_CHECK(bytes.ok(),
                "what was read cannot be written: " + std::string(bytes.status().message()));
  return *bytes;
}

// Mutations do not get past the checksum, which files of others lack.
std::string WithoutChecksum(std::string file) {
  const std::string_view begin = R"("xxh3_64":")";
  const std::size_t at = file.find(begin);
  ADAMANT_CHECK(at != std::string::npos, "there is no checksum");
  file.replace(at, begin.size(), R"("of another":")").resize(file.size());
  const std::uint64_t longer = std::string_view(R"("of another":")").size() - begin.size();
  file[0] = static_cast<char>(static_cast<unsigned char>(file[0]) + longer);
  return file;
}

}  // namespace

std::vector<std::string> Seeds() {
  TensorFile file{.metadata = {{"job", "digits"}}, .tensors = {}};
  file.tensors.push_back({.name = "fc1.weight", .shape = {2, 3}, .values = {1, 2, 3, 4, 5, 6}});
  file.tensors.push_back({.name = "fc1.bias", .shape = {2}, .values = {0, 1}});
  return {Encoded(file), WithoutChecksum(Encoded(file))};
}

bool Try(std::string_view input) {
  const auto file = exports::DecodeSafetensors(input);
  if (!file.ok()) {
    return false;
  }
  for (const exports::Tensor& tensor : file->tensors) {
    const auto elements = ElementCount(tensor.shape);
    ADAMANT_CHECK(elements && static_cast<std::size_t>(*elements) == tensor.values.size(),
                  "a shape that does not fit");
  }
  const auto again = exports::DecodeSafetensors(Encoded(*file));
  ADAMANT_CHECK(again.ok() && again->metadata == file->metadata &&
                    again->tensors.size() == file->tensors.size(),
                "a file is written otherwise than it was read");
  return true;
}

}  // namespace adamant::fuzz
