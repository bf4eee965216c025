#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/system/files.h"
#include "services/common/tensor/shape.h"

namespace adamant::exports {

using Metadata = std::map<std::string, std::string>;

/// A tensor to write; `values` are borrowed, row-major, one per element of `shape`.
struct TensorView {
  std::string name;
  Shape shape;
  std::span<const float> values;
};

/// A tensor that was read.
struct Tensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

struct TensorFile {
  Metadata metadata;
  std::vector<Tensor> tensors;  ///< in the order of their bytes
};

/// The tensors as a safetensors file: little-endian float32, in the order given. Its metadata hold
/// one entry more, "xxh3_64": the XXH3 of the XXH3 (8 bytes each) of the header without that entry
/// and of each tensor.
/// Errors: InvalidArgument when names repeat or are "__metadata__", or values and shape differ.
/// Source: github.com/huggingface/safetensors, format section of its README.
absl::StatusOr<std::string> EncodeSafetensors(const std::vector<TensorView>& tensors,
                                              const Metadata& metadata);

/// The inverse, for float32 tensors; "xxh3_64" is checked where it stands, and left out.
/// Errors: DataLoss when the bytes are no such file: lengths that exceed it, broken JSON, repeated
/// names, offsets that overlap, leave gaps or disagree with the shape, a checksum that differs.
/// Unimplemented for other types than F32. The message names the tensor.
absl::StatusOr<TensorFile> DecodeSafetensors(std::string_view bytes);

/// Writes the file; errors as EncodeSafetensors and WriteFile.
absl::Status WriteSafetensors(const std::filesystem::path& path,
                              const std::vector<TensorView>& tensors,
                              const Metadata& metadata,
                              Pipes pipes = Pipes::kRead);

/// Errors: as DecodeSafetensors and ReadFile, naming the file.
absl::StatusOr<TensorFile> ReadSafetensors(const std::filesystem::path& path,
                                           std::uint64_t max_bytes,
                                           Pipes pipes = Pipes::kRefused);

}  // namespace adamant::exports
