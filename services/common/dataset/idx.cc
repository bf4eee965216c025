#include "services/common/dataset/idx.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/dataset/input_file.h"

namespace adamant::dataset {
namespace {

// An IDX header: two zero bytes, the element type, the number of dimensions, then the dimensions as
// big-endian 32-bit numbers.
constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::uint64_t kMagicBytes = 4;
constexpr std::uint64_t kDimensionBytes = 4;

absl::Status At(const InputFile& file, std::uint64_t offset, const std::string& what) {
  return absl::InvalidArgumentError(file.path() + ": offset " + std::to_string(offset) + ": " +
                                    what);
}

absl::Status Truncated(const InputFile& file, const std::string& what) {
  return absl::DataLossError(file.path() + ": offset " + std::to_string(file.offset()) +
                             ": expected " + what + ", found the end of the file (truncated)");
}

std::string TypeName(std::uint8_t type) {
  switch (type) {
    case 0x08:
      return "unsigned bytes";
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "32-bit floats";
    case 0x0E:
      return "64-bit floats";
    default:
      return "an unknown type";
  }
}

std::string Hex(std::uint8_t byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// What the magic number of a file must say.
struct Kind {
  const char* what;  // "images"
  const char* other;
  std::uint8_t min_dimensions;
  std::uint8_t max_dimensions;
};
constexpr Kind kImages{"images", "labels", 3, 4};
constexpr Kind kLabels{"labels", "images", 1, 1};

absl::StatusOr<std::uint8_t> ReadMagic(InputFile& file, const Kind& kind) {
  std::uint8_t magic[kMagicBytes] = {};
  ADAMANT_ASSIGN_OR_RETURN(const std::size_t count, file.Read(magic));
  if (count < kMagicBytes) {
    return Truncated(file, "an IDX header of at least 8 bytes");
  }
  if (magic[0] != 0 || magic[1] != 0) {
    return At(file,
              0,
              "expected an IDX file, whose first two bytes are 0, found " + Hex(magic[0]) + " " +
                  Hex(magic[1]));
  }
  if (magic[2] != kUnsignedByte) {
    return At(file,
              2,
              "expected type 0x08 (unsigned bytes), found " + Hex(magic[2]) + " (" +
                  TypeName(magic[2]) + ")");
  }
  const std::uint8_t dimensions = magic[3];
  if (dimensions < kind.min_dimensions || dimensions > kind.max_dimensions) {
    std::string expected = std::to_string(kind.min_dimensions);
    if (kind.max_dimensions != kind.min_dimensions) {
      expected += " or " + std::to_string(kind.max_dimensions);
    }
    const bool swapped = dimensions == 1 || dimensions == 3;
    return At(file,
              3,
              std::string("expected ") + expected + " dimension(s) for " + kind.what + ", found " +
                  std::to_string(dimensions) +
                  (swapped ? std::string("; is this the file of ") + kind.other + "?" : ""));
  }
  return dimensions;
}

// An open file, read up to the end of its header.
struct Array {
  InputFile file;
  std::vector<std::uint32_t> dimensions;
  std::uint64_t elements = 0;  // their product; fits what the file can hold

  [[nodiscard]] std::uint64_t header_bytes() const {
    return kMagicBytes + kDimensionBytes * dimensions.size();
  }
};

absl::Status ReadDimensions(Array& array, std::uint8_t count) {
  for (std::uint8_t i = 0; i < count; ++i) {
    const std::uint64_t offset = array.file.offset();
    std::uint8_t bytes[kDimensionBytes] = {};
    ADAMANT_ASSIGN_OR_RETURN(const std::size_t read, array.file.Read(bytes));
    if (read < kDimensionBytes) {
      return Truncated(array.file, std::to_string(count) + " dimensions");
    }
    const std::uint32_t dimension = (std::uint32_t{bytes[0]} << 24) |
                                    (std::uint32_t{bytes[1]} << 16) |
                                    (std::uint32_t{bytes[2]} << 8) | std::uint32_t{bytes[3]};
    if (dimension == 0) {
      return At(array.file, offset, "expected a dimension of at least 1, found 0");
    }
    array.dimensions.push_back(dimension);
  }
  return absl::OkStatus();
}

std::string Product(const std::vector<std::uint32_t>& dimensions) {
  std::string text;
  for (const std::uint32_t dimension : dimensions) {
    text += (text.empty() ? "" : " x ") + std::to_string(dimension);
  }
  return text;
}

// Multiplies the dimensions and compares with what the limits allow and the file can hold.
absl::Status CheckElements(Array& array, const IdxLimits& limits) {
  const std::uint64_t header = array.header_bytes();
  std::uint64_t elements = 1;
  for (const std::uint32_t dimension : array.dimensions) {
    if (elements > (limits.max_bytes - header) / dimension) {
      return At(array.file,
                kMagicBytes,
                "expected at most " + std::to_string(limits.max_bytes) +
                    " bytes of content, found dimensions " + Product(array.dimensions));
    }
    elements *= dimension;
  }
  const std::uint64_t most = array.file.max_content_bytes();
  const std::string promise = "dimensions " + Product(array.dimensions) + " promise " +
                              std::to_string(header + elements) + " bytes of content";
  if (header + elements > most) {
    return absl::DataLossError(array.file.path() + ": offset " + std::to_string(kMagicBytes) +
                               ": " + promise + ", but the file holds " +
                               (array.file.compressed() ? "at most " : "") + std::to_string(most) +
                               " (truncated, or a wrong header)");
  }
  if (!array.file.compressed() && header + elements < most) {
    return At(array.file,
              header + elements,
              "expected the end of the file, found " + std::to_string(most - header - elements) +
                  " trailing bytes; " + promise);
  }
  array.elements = elements;
  return absl::OkStatus();
}

absl::StatusOr<Array> OpenArray(const std::string& path,
                                const Kind& kind,
                                const IdxLimits& limits) {
  ADAMANT_CHECK(limits.max_bytes > 1024, "the limit must leave room for a header");
  ADAMANT_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  Array array{std::move(file), {}, 0};
  ADAMANT_ASSIGN_OR_RETURN(const std::uint8_t dimensions, ReadMagic(array.file, kind));
  ADAMANT_RETURN_IF_ERROR(ReadDimensions(array, dimensions));
  ADAMANT_RETURN_IF_ERROR(CheckElements(array, limits));
  return array;
}

absl::Status NoElements(const Array& array) {
  return Truncated(
      array.file,
      std::to_string(array.elements) + " elements (dimensions " + Product(array.dimensions) + ")");
}

absl::Status CheckEnd(Array& array) {
  std::uint8_t beyond = 0;
  ADAMANT_ASSIGN_OR_RETURN(const std::size_t trailing, array.file.Read(std::span(&beyond, 1)));
  if (trailing > 0) {
    return At(array.file,
              array.header_bytes() + array.elements,
              "expected the end of the content, found trailing bytes; dimensions " +
                  Product(array.dimensions));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint8_t>> ReadElements(Array& array) {
  std::vector<std::uint8_t> elements(array.elements);
  ADAMANT_ASSIGN_OR_RETURN(const std::size_t count, array.file.Read(elements));
  if (count < elements.size()) {
    return NoElements(array);
  }
  ADAMANT_RETURN_IF_ERROR(CheckEnd(array));
  return elements;
}

absl::Status SkipElements(Array& array) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{256} << 10;
  std::vector<std::uint8_t> block(std::min(kBlockBytes, array.elements));
  for (std::uint64_t left = array.elements; left > 0;) {
    const std::span<std::uint8_t> next =
        std::span(block).first(std::min<std::uint64_t>(block.size(), left));
    ADAMANT_ASSIGN_OR_RETURN(const std::size_t count, array.file.Read(next));
    if (count < next.size()) {
      return NoElements(array);
    }
    left -= count;
  }
  return CheckEnd(array);
}

absl::Status CheckLabels(const Array& array,
                         const std::vector<std::uint8_t>& labels,
                         std::uint32_t classes) {
  const auto bad = std::find_if(
      labels.begin(), labels.end(), [classes](std::uint8_t label) { return label >= classes; });
  if (bad == labels.end()) {
    return absl::OkStatus();
  }
  return At(array.file,
            array.header_bytes() + static_cast<std::uint64_t>(bad - labels.begin()),
            "expected a label below " + std::to_string(classes) +
                " (the number of classes), found " + std::to_string(*bad));
}

absl::StatusOr<std::vector<std::uint8_t>> ReadLabels(Array& array, const IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(std::vector<std::uint8_t> labels, ReadElements(array));
  ADAMANT_RETURN_IF_ERROR(CheckLabels(array, labels, limits.classes));
  return labels;
}

// Both files of a data set, read up to the end of their headers.
struct Pair {
  Array images;
  Array labels;

  [[nodiscard]] IdxInfo info() const {
    const std::vector<std::uint32_t>& d = images.dimensions;
    const bool with_channels = d.size() == 4;
    return {.examples = d[0],
            .channels = with_channels ? d[1] : 1,
            .height = d[d.size() - 2],
            .width = d[d.size() - 1]};
  }
};

absl::StatusOr<Pair> OpenPair(const IdxPaths& paths, const IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(Array images, OpenArray(paths.images, kImages, limits));
  ADAMANT_ASSIGN_OR_RETURN(Array labels, OpenArray(paths.labels, kLabels, limits));
  if (images.dimensions[0] != labels.dimensions[0]) {
    return At(labels.file,
              kMagicBytes,
              "expected " + std::to_string(images.dimensions[0]) +
                  " labels, one for each image of " + paths.images + ", found " +
                  std::to_string(labels.dimensions[0]));
  }
  return Pair{std::move(images), std::move(labels)};
}

absl::StatusOr<Dataset> WithoutImages(Pair& pair, const IdxLimits& limits) {
  const IdxInfo info = pair.info();
  ADAMANT_ASSIGN_OR_RETURN(std::vector<std::uint8_t> labels, ReadLabels(pair.labels, limits));
  return Dataset{.channels = info.channels,
                 .height = info.height,
                 .width = info.width,
                 .images = {},
                 .labels = std::move(labels)};
}

void AppendBigEndian(std::vector<std::uint8_t>& out, std::uint64_t value) {
  ADAMANT_CHECK(value <= std::numeric_limits<std::uint32_t>::max(), "a dimension has 32 bits");
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

absl::Status WriteArray(const std::string& path,
                        const std::vector<std::uint64_t>& dimensions,
                        const std::vector<std::uint8_t>& elements) {
  std::vector<std::uint8_t> content = {
      0, 0, kUnsignedByte, static_cast<std::uint8_t>(dimensions.size())};
  content.reserve(kMagicBytes + kDimensionBytes * dimensions.size() + elements.size());
  for (const std::uint64_t dimension : dimensions) {
    AppendBigEndian(content, dimension);
  }
  content.insert(content.end(), elements.begin(), elements.end());
  return WriteFile(path, Gzip(content));
}

}  // namespace

absl::StatusOr<IdxInfo> InspectIdx(const IdxPaths& paths, const IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(const Pair pair, OpenPair(paths, limits));
  return pair.info();
}

absl::StatusOr<IdxInfo> CheckIdx(const IdxPaths& paths, const IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(Pair pair, OpenPair(paths, limits));
  ADAMANT_RETURN_IF_ERROR(ReadLabels(pair.labels, limits).status());
  return pair.info();
}

absl::StatusOr<IdxInfo> VerifyIdx(const IdxPaths& paths, const IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(Pair pair, OpenPair(paths, limits));
  ADAMANT_RETURN_IF_ERROR(ReadLabels(pair.labels, limits).status());
  ADAMANT_RETURN_IF_ERROR(SkipElements(pair.images));
  return pair.info();
}

absl::StatusOr<Dataset> ReadIdx(const IdxPaths& paths, const IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(Pair pair, OpenPair(paths, limits));
  ADAMANT_ASSIGN_OR_RETURN(Dataset dataset, WithoutImages(pair, limits));
  ADAMANT_ASSIGN_OR_RETURN(dataset.images, ReadElements(pair.images));
  return dataset;
}

absl::StatusOr<bool> IsCompressed(const IdxPaths& paths) {
  ADAMANT_ASSIGN_OR_RETURN(const InputFile images, InputFile::Open(paths.images));
  return images.compressed();
}

absl::StatusOr<IdxFiles> OpenIdx(const IdxPaths& paths, const IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(Pair pair, OpenPair(paths, limits));
  ADAMANT_ASSIGN_OR_RETURN(Dataset dataset, WithoutImages(pair, limits));
  const std::uint64_t first_pixel = pair.images.header_bytes();
  return IdxFiles{
      .set = std::move(dataset), .images = std::move(pair.images.file), .first_pixel = first_pixel};
}

IdxPaths MnistPaths(const std::string& folder, const std::string& prefix) {
  return {.images = folder + "/" + prefix + "-images-idx3-ubyte.gz",
          .labels = folder + "/" + prefix + "-labels-idx1-ubyte.gz"};
}

absl::Status WriteIdx(const Dataset& dataset, const IdxPaths& paths) {
  std::vector<std::uint64_t> dimensions = {dataset.size(), dataset.height, dataset.width};
  if (dataset.channels != 1) {
    dimensions.insert(dimensions.begin() + 1, dataset.channels);
  }
  ADAMANT_RETURN_IF_ERROR(WriteArray(paths.images, dimensions, dataset.images));
  return WriteArray(paths.labels, {dataset.size()}, dataset.labels);
}

}  // namespace adamant::dataset
