#include "services/common/dataset/lazy_idx.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::dataset {

absl::StatusOr<std::unique_ptr<LazyIdx>> LazyIdx::Open(const IdxPaths& paths,
                                                       const Options& options,
                                                       OnFailure on_failure) {
  ADAMANT_ASSIGN_OR_RETURN(IdxFiles files, OpenIdx(paths, options.limits));
  if (files.images.compressed()) {
    return absl::InvalidArgumentError(files.images.path() + ": is compressed");
  }
  files.set.images.resize(files.set.size() * files.set.example_bytes());
  return std::unique_ptr<LazyIdx>(new LazyIdx(std::move(files), options, std::move(on_failure)));
}

LazyIdx::LazyIdx(IdxFiles files, const Options& options, OnFailure on_failure)
    : file_(std::move(files.images)),
      first_pixel_(files.first_pixel),
      on_failure_(std::move(on_failure)),
      images_(std::make_shared<Dataset>(std::move(files.set))),
      set_(images_),
      block_images_(std::max<std::uint64_t>(1, options.block_bytes / images_->example_bytes())),
      states_((images_->size() + block_images_ - 1) / block_images_) {
  if (options.reads_ahead) {
    thread_ = std::jthread([this] { ReadRest(); });
  }
}

LazyIdx::~LazyIdx() { stop_ = true; }

void LazyIdx::Read(std::uint64_t index) { ReadBlock(index / block_images_); }

void LazyIdx::ReadBlock(std::uint64_t block) {
  std::atomic<State>& state = states_[block];
  State found = state.load();
  if (found == State::kRead) {
    return;  // as nearly always: no other thread is disturbed
  }
  found = State::kAbsent;
  if (!state.compare_exchange_strong(found, State::kBegun)) {
    while (found != State::kRead) {
      state.wait(found);
      found = state.load();
    }
    return;
  }
  const std::uint64_t first = block * block_images_;
  const std::uint64_t count = std::min(block_images_, images_->size() - first);
  const std::uint64_t bytes = images_->example_bytes();
  const std::uint64_t offset = first_pixel_ + first * bytes;
  const std::span<std::uint8_t> out =
      std::span(images_->images).subspan(first * bytes, count * bytes);
  const absl::StatusOr<std::size_t> got = file_.ReadAt(offset, out);
  if (!got.ok()) {
    on_failure_(got.status());
  } else if (*got < out.size()) {
    on_failure_(absl::DataLossError(file_.path() + ": offset " + std::to_string(offset + *got) +
                                    ": the file has become shorter than it was"));
  }
  read_ += count;  // before anyone who waits for it can ask how many there are
  state = State::kRead;
  state.notify_all();
}

void LazyIdx::ReadRest() {
  for (std::uint64_t block = 0; block < states_.size() && !stop_; ++block) {
    ReadBlock(block);
  }
}

}  // namespace adamant::dataset
