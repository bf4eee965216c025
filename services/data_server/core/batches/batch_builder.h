#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "services/common/dataset/dataset.h"
#include "services/data_server/core/batches/transform.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/core/order.h"

namespace adamant::data_server {

/// The examples of one batch, ready to be sent.
struct PreparedBatch {
  std::span<const std::uint8_t> images;  ///< one after another
  std::vector<std::uint8_t> labels;
  std::shared_ptr<const void> owner;  ///< keeps `images` valid
  std::uint64_t own_bytes = 0;        ///< memory taken for it (0: it points into the data set)
};

struct BatchBuilderOptions {
  std::uint64_t seed = 0;  ///< of the transformations
  std::uint32_t parts = 1;
  std::uint32_t batch_size = 32;
  TransformOptions transforms = {};  ///< of training examples

  /// Called before the image of an example is read, which may not be there yet; null: all are.
  std::function<void(std::uint64_t example)> fetch_train = {};
  std::function<void(std::uint64_t example)> fetch_validation = {};
};

/// Puts batches together. Threads: any.
class BatchBuilder {
 public:
  using SharedDataset = std::shared_ptr<const dataset::Dataset>;

  /// Fewer than 2^32 examples each.
  BatchBuilder(const BatchBuilderOptions& options, SharedDataset train, SharedDataset validation);

  /// `order`: EpochOrder of the batch's epoch, for training batches. The batch exists. Validation
  /// batches lie in the data set as they are sent, so nothing is copied.
  [[nodiscard]] PreparedBatch Build(const BatchId& batch,
                                    std::span<const std::uint32_t> order) const;

  /// The most memory that a batch takes.
  [[nodiscard]] std::uint64_t max_batch_bytes() const;

 private:
  [[nodiscard]] PreparedBatch BuildTraining(const BatchId& batch,
                                            std::span<const std::uint32_t> order) const;

  const BatchBuilderOptions options_;
  const SharedDataset train_;
  const SharedDataset validation_;
  const PartLayout train_layout_;
  const PartLayout validation_layout_;
  const ImageShape shape_;
};

}  // namespace adamant::data_server
