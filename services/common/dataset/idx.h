#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/dataset/dataset.h"
#include "services/common/dataset/input_file.h"

namespace adamant::dataset {

/// A data set in MNIST's IDX format: a file of images, unsigned bytes [examples, height, width] or
/// [examples, channels, height, width], and one of labels, unsigned bytes [examples]. Each is plain
/// or compressed by gzip.
/// Source of the format: LeCun, Cortes and Burges, "The MNIST database of handwritten digits".
struct IdxPaths {
  std::string images;
  std::string labels;
};

/// Limits that a data set must satisfy.
struct IdxLimits {
  std::uint32_t classes = 256;                       ///< labels are below this
  std::uint64_t max_bytes = std::uint64_t{1} << 40;  ///< of one file's content
};

/// Sizes that the headers give.
struct IdxInfo {
  std::uint64_t examples = 0;
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

/// Reads both headers, and checks them against each other and the sizes of the files; reads no
/// pixels and no labels. Errors as ReadIdx.
absl::StatusOr<IdxInfo> InspectIdx(const IdxPaths& paths, const IdxLimits& limits = {});

/// Reads the labels and both headers; checks all but the pixels. Errors as ReadIdx.
absl::StatusOr<IdxInfo> CheckIdx(const IdxPaths& paths, const IdxLimits& limits = {});

/// Reads both files to their ends, in constant memory but for the labels: finds all that ReadIdx
/// finds. Errors as ReadIdx.
absl::StatusOr<IdxInfo> VerifyIdx(const IdxPaths& paths, const IdxLimits& limits = {});

/// Reads a whole data set.
/// Memory: what the headers promise is refused before it is allocated, when the files cannot hold
/// it or `limits` do not allow it.
/// Threads: any.
/// Errors: NotFound and other system errors; InvalidArgument for what is no such data set, DataLoss
/// for truncated or damaged files. Each names the file, the offset in the (inflated) content, what
/// was expected and what was found.
absl::StatusOr<Dataset> ReadIdx(const IdxPaths& paths, const IdxLimits& limits = {});

/// Returns whether the images are compressed by gzip. Errors: of the system.
absl::StatusOr<bool> IsCompressed(const IdxPaths& paths);

/// A data set of which all is read but the images.
struct IdxFiles {
  Dataset set;                    ///< without images
  InputFile images;               ///< read up to the first pixel
  std::uint64_t first_pixel = 0;  ///< its offset in the content
};

/// Reads the labels and both headers. Errors as ReadIdx.
absl::StatusOr<IdxFiles> OpenIdx(const IdxPaths& paths, const IdxLimits& limits = {});

/// The names MNIST uses, in `folder`: `prefix` is "train" or "t10k".
IdxPaths MnistPaths(const std::string& folder, const std::string& prefix);

/// Writes a data set, compressed by gzip, each file as WriteFile does. Equal data sets give
/// equal files. Errors: as WriteFile.
absl::Status WriteIdx(const Dataset& dataset, const IdxPaths& paths);

}  // namespace adamant::dataset
