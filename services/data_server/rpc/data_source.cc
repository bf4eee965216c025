#include "services/data_server/rpc/data_source.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/dataset/idx.h"
#include "services/common/dataset/lazy_digits.h"
#include "services/common/dataset/lazy_idx.h"

namespace adamant::data_server {
namespace {

using dataset::Dataset;

LoadedData Generate(const v1::DigitsGenerator& digits, const std::string& set) {
  const dataset::DigitsOptions options{.seed = static_cast<std::uint64_t>(digits.seed()),
                                       .examples = static_cast<std::uint64_t>(digits.examples())};
  const auto logged_tenths = std::make_shared<std::atomic<std::uint64_t>>(0);
  const auto log = [set, logged_tenths](std::uint64_t done, std::uint64_t total) {
    const std::uint64_t tenths = done * 10 / total;
    if (std::uint64_t logged = *logged_tenths;
        tenths > logged && logged_tenths->compare_exchange_strong(logged, tenths)) {
      LogInfo("generating digits", {{"set", set}, {"examples", done}, {"of", total}});
    }
  };
  const auto lazy = std::make_shared<dataset::LazyDigits>(options, log);
  return {.set = lazy->set(), .fetch = [lazy](std::uint64_t example) { lazy->Draw(example); }};
}

absl::Status CheckSize(std::uint64_t examples, const std::string& set) {
  return examples <= std::numeric_limits<std::uint32_t>::max()
             ? absl::OkStatus()
             : absl::InvalidArgumentError("spec.data." + set +
                                          ": expected fewer than 2^32 examples, found " +
                                          std::to_string(examples));
}

// What was dispatched without an image would be trained.
[[noreturn]] void EndUnread(const absl::Status& status) {
  LogError("data cannot be read any more", {{"error", status.ToString()}});
  std::_Exit(1);
}

absl::StatusOr<LoadedData> Open(const job::IdxSource& source, const dataset::IdxLimits& limits) {
  ADAMANT_ASSIGN_OR_RETURN(const bool compressed, dataset::IsCompressed(source.paths));
  if (compressed) {
    ADAMANT_ASSIGN_OR_RETURN(Dataset data, dataset::ReadIdx(source.paths, limits));
    return LoadedData{.set = std::make_shared<const Dataset>(std::move(data))};
  }
  ADAMANT_ASSIGN_OR_RETURN(std::shared_ptr<dataset::LazyIdx> lazy,
                           dataset::LazyIdx::Open(source.paths, {.limits = limits}, EndUnread));
  return LoadedData{.set = lazy->set(),
                    .fetch = [lazy](std::uint64_t example) { lazy->Read(example); }};
}

absl::StatusOr<LoadedData> Read(const job::IdxSource& source,
                                const std::string& set,
                                const DataShape& shape) {
  absl::StatusOr<LoadedData> data = Open(source, {.classes = shape.classes});
  if (!data.ok()) {
    return AboutFiles(data.status(), set, source);
  }
  const std::string misfit =
      job::Misfit(source,
                  {.examples = data->set->size(),
                   .channels = data->set->channels,
                   .height = data->set->height,
                   .width = data->set->width},
                  {shape.image.channels, shape.image.height, shape.image.width});
  if (!misfit.empty()) {
    return absl::InvalidArgumentError(
        AboutField(set, {.field = source.fields.images, .message = misfit}));
  }
  return data;
}

}  // namespace

absl::StatusOr<LoadedData> LoadData(const v1::DataSource& source,
                                    const std::string& set,
                                    const DataPlaces& places,
                                    const DataShape& shape,
                                    service::ControllerLink& controller) {
  if (source.has_digits()) {
    ADAMANT_RETURN_IF_ERROR(CheckSize(static_cast<std::uint64_t>(source.digits().examples()), set));
    return Generate(source.digits(), set);
  }
  ADAMANT_ASSIGN_OR_RETURN(const job::IdxSource files, LocateData(source, set, places, controller));
  ADAMANT_ASSIGN_OR_RETURN(LoadedData data, Read(files, set, shape));
  ADAMANT_RETURN_IF_ERROR(CheckSize(data.set->size(), set));
  LogInfo(data.fetch ? "data is there, and read as it is needed" : "data loaded",
          {{"set", set}, {"examples", data.set->size()}});
  return data;
}

}  // namespace adamant::data_server
