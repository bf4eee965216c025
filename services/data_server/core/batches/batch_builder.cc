#include "services/data_server/core/batches/batch_builder.h"

#include <algorithm>
#include <utility>

#include "services/common/base/rng.h"

namespace adamant::data_server {
namespace {

// Separates the numbers drawn for transformations from the order's, which has the same seed.
constexpr std::uint64_t kTransformStream = 0x7472616e73666f72;

}  // namespace

BatchBuilder::BatchBuilder(const BatchBuilderOptions& options,
                           SharedDataset train,
                           SharedDataset validation)
    : options_(options),
      train_(std::move(train)),
      validation_(std::move(validation)),
      train_layout_(static_cast<std::uint32_t>(train_->size()), options.parts, options.batch_size),
      validation_layout_(static_cast<std::uint32_t>(validation_->size()), 1, options.batch_size),
      shape_{train_->channels, train_->height, train_->width} {}

std::uint64_t BatchBuilder::max_batch_bytes() const {
  return options_.batch_size * (train_->example_bytes() + 1);
}

PreparedBatch BatchBuilder::Build(const BatchId& batch,
                                  std::span<const std::uint32_t> order) const {
  if (batch.kind == WorkKind::kTrain) {
    return BuildTraining(batch, order);
  }
  const std::uint64_t first = validation_layout_.Position(0, batch.index, 0);
  const std::uint64_t count = validation_layout_.BatchExamples(0, batch.index);
  const std::uint64_t bytes = validation_->example_bytes();
  for (std::uint64_t i = 0; options_.fetch_validation && i < count; ++i) {
    options_.fetch_validation(first + i);
  }
  const auto labels = std::span(validation_->labels).subspan(first, count);
  return {.images = std::span(validation_->images).subspan(first * bytes, count * bytes),
          .labels = {labels.begin(), labels.end()},
          .owner = validation_,
          .own_bytes = 0};
}

PreparedBatch BatchBuilder::BuildTraining(const BatchId& batch,
                                          std::span<const std::uint32_t> order) const {
  const std::uint32_t count = train_layout_.BatchExamples(batch.part, batch.index);
  const std::uint64_t bytes = train_->example_bytes();
  const auto images = std::make_shared<std::vector<std::uint8_t>>(count * bytes);
  PreparedBatch prepared{.images = *images, .labels = {}, .owner = images, .own_bytes = 0};
  prepared.labels.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t example = order[train_layout_.Position(batch.part, batch.index, i)];
    if (options_.fetch_train) {
      options_.fetch_train(example);
    }
    const std::span<std::uint8_t> target = std::span(*images).subspan(i * bytes, bytes);
    if (options_.transforms.any()) {
      const std::uint64_t seed = MixSeed(options_.seed, kTransformStream, batch.epoch, example);
      Resample(DrawMap(options_.transforms, shape_, seed), shape_, train_->image(example), target);
    } else {
      std::ranges::copy(train_->image(example), target.begin());
    }
    prepared.labels.push_back(train_->labels[example]);
  }
  prepared.own_bytes = count * (bytes + 1);
  return prepared;
}

}  // namespace adamant::data_server
