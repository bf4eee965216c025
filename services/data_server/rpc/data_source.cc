#include "services/data_server/rpc/data_source.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/dataset/digits.h"
#include "services/common/dataset/idx.h"

namespace adamant::data_server {
namespace {

using dataset::Dataset;

std::string Sizes(std::uint32_t channels, std::uint32_t height, std::uint32_t width) {
  return std::to_string(channels) + " x " + std::to_string(height) + " x " + std::to_string(width);
}

std::string Resolve(const std::string& data_root, const std::string& path) {
  return (std::filesystem::path(data_root) / path).string();
}

Dataset Generate(const v1::DigitsGenerator& digits, const std::string& name) {
  const dataset::DigitsOptions options{.seed = static_cast<std::uint64_t>(digits.seed()),
                                       .examples = static_cast<std::uint64_t>(digits.examples())};
  std::uint64_t logged_tenths = 0;
  return dataset::GenerateDigits(options, [&](std::uint64_t done, std::uint64_t total) {
    if (const std::uint64_t tenths = done * 10 / total; tenths > logged_tenths) {
      logged_tenths = tenths;
      LogInfo("generating digits", {{"set", name}, {"examples", done}, {"of", total}});
    }
  });
}

// System errors become ones that a restart does not cure.
absl::Status Permanent(const absl::Status& status) {
  return absl::IsDataLoss(status) ? status : absl::InvalidArgumentError(status.message());
}

}  // namespace

absl::StatusOr<Dataset> LoadData(const v1::DataSource& source,
                                 const std::string& name,
                                 const std::string& data_root,
                                 const DataShape& shape) {
  Dataset data;
  if (source.has_digits()) {
    data = Generate(source.digits(), name);
  } else {
    const dataset::IdxPaths paths{.images = Resolve(data_root, source.idx().images()),
                                  .labels = Resolve(data_root, source.idx().labels())};
    absl::StatusOr<Dataset> read = dataset::ReadIdx(paths, {.classes = shape.classes});
    if (!read.ok()) {
      return Permanent(read.status());
    }
    data = *std::move(read);
  }
  const std::string what = "the " + name + " data";
  if (data.channels != shape.image.channels || data.height != shape.image.height ||
      data.width != shape.image.width) {
    return absl::InvalidArgumentError(
        what + ": expected images of " +
        Sizes(shape.image.channels, shape.image.height, shape.image.width) +
        " (the net's input), found " + Sizes(data.channels, data.height, data.width));
  }
  if (data.size() > std::numeric_limits<std::uint32_t>::max()) {
    return absl::InvalidArgumentError(what + ": expected fewer than 2^32 examples, found " +
                                      std::to_string(data.size()));
  }
  LogInfo("data loaded", {{"set", name}, {"examples", data.size()}});
  return data;
}

}  // namespace adamant::data_server
