#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/dataset/dataset.h"
#include "services/common/dataset/idx.h"
#include "services/common/dataset/input_file.h"

namespace adamant::dataset {

/// The data set of ReadIdx, of files that are not compressed; images are read when they are asked
/// for, so that the first batches need not wait for the last. A thread of its own reads the others
/// meanwhile, front to back, and ends with it.
/// Threads: any.
class LazyIdx {
 public:
  struct Options {
    IdxLimits limits{};
    std::uint64_t block_bytes = std::uint64_t{256} << 10;  ///< read at once, or one image
    bool reads_ahead = true;                               ///< starts the thread
  };

  /// Called, by any thread, when an image cannot be read that the file held when it was opened. If
  /// it returns, Read does, and what there is of the image is not to be used.
  using OnFailure = std::function<void(const absl::Status& status)>;

  /// Reads the labels and both headers. Errors as ReadIdx; InvalidArgument if the images are
  /// compressed.
  static absl::StatusOr<std::unique_ptr<LazyIdx>> Open(const IdxPaths& paths,
                                                       const Options& options,
                                                       OnFailure on_failure);
  ~LazyIdx();
  LazyIdx(const LazyIdx&) = delete;
  LazyIdx& operator=(const LazyIdx&) = delete;

  /// Shape and labels are there from the start; an image only after Read has returned for it.
  [[nodiscard]] const std::shared_ptr<const Dataset>& set() const { return set_; }

  /// Returns when the image is there.
  void Read(std::uint64_t index);

  /// Returns the number of images that are there.
  [[nodiscard]] std::uint64_t read() const { return read_; }

 private:
  enum class State : std::uint8_t { kAbsent, kBegun, kRead };

  LazyIdx(IdxFiles files, const Options& options, OnFailure on_failure);

  void ReadBlock(std::uint64_t block);
  void ReadRest();

  const InputFile file_;
  const std::uint64_t first_pixel_;  // offset in the file
  const OnFailure on_failure_;
  const std::shared_ptr<Dataset> images_;  // a block is written by who has begun it
  const std::shared_ptr<const Dataset> set_;
  const std::uint64_t block_images_;
  std::vector<std::atomic<State>> states_;  // by block
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<bool> stop_ = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace adamant::dataset
