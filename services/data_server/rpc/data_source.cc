#include "services/data_server/rpc/data_source.h"

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

Dataset Generate(const v1::DigitsGenerator& digits, const std::string& set) {
  const dataset::DigitsOptions options{.seed = static_cast<std::uint64_t>(digits.seed()),
                                       .examples = static_cast<std::uint64_t>(digits.examples())};
  std::uint64_t logged_tenths = 0;
  return dataset::GenerateDigits(options, [&](std::uint64_t done, std::uint64_t total) {
    if (const std::uint64_t tenths = done * 10 / total; tenths > logged_tenths) {
      logged_tenths = tenths;
      LogInfo("generating digits", {{"set", set}, {"examples", done}, {"of", total}});
    }
  });
}

absl::StatusOr<Dataset> Read(const job::IdxSource& source,
                             const std::string& set,
                             const DataShape& shape) {
  absl::StatusOr<Dataset> data = dataset::ReadIdx(source.paths, {.classes = shape.classes});
  if (!data.ok()) {
    const std::string text = AboutField(set, job::ProblemOf(data.status(), source));
    return absl::IsUnavailable(data.status()) || absl::IsDataLoss(data.status())
               ? absl::Status(data.status().code(), text)
               : absl::InvalidArgumentError(text);
  }
  const std::string misfit =
      job::Misfit(source,
                  {.examples = data->size(),
                   .channels = data->channels,
                   .height = data->height,
                   .width = data->width},
                  {shape.image.channels, shape.image.height, shape.image.width});
  if (!misfit.empty()) {
    return absl::InvalidArgumentError(
        AboutField(set, {.field = source.fields.images, .message = misfit}));
  }
  return data;
}

}  // namespace

absl::StatusOr<Dataset> LoadData(const v1::DataSource& source,
                                 const std::string& set,
                                 const DataPlaces& places,
                                 const DataShape& shape,
                                 service::ControllerLink& controller) {
  Dataset data;
  if (source.has_digits()) {
    data = Generate(source.digits(), set);
  } else {
    ADAMANT_ASSIGN_OR_RETURN(const job::IdxSource files,
                             LocateData(source, set, places, controller));
    ADAMANT_ASSIGN_OR_RETURN(data, Read(files, set, shape));
  }
  if (data.size() > std::numeric_limits<std::uint32_t>::max()) {
    return absl::InvalidArgumentError("spec.data." + set +
                                      ": expected fewer than 2^32 examples, found " +
                                      std::to_string(data.size()));
  }
  LogInfo("data loaded", {{"set", set}, {"examples", data.size()}});
  return data;
}

}  // namespace adamant::data_server
