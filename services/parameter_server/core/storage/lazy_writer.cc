#include "services/parameter_server/core/storage/lazy_writer.h"

#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {
namespace {

constexpr std::uint64_t kBatchBytes = std::uint64_t{8} << 20;

}  // namespace

absl::Status LazyWriter::Put(std::string key, std::string value) {
  bytes_ += value.size();
  batch_bytes_ += value.size();
  batch_.push_back({.key = std::move(key), .value = std::move(value)});
  return batch_bytes_ >= kBatchBytes ? WriteBatch() : absl::OkStatus();
}

absl::Status LazyWriter::WriteBatch() {
  ADAMANT_RETURN_IF_ERROR(store_.WriteLazily(batch_));
  batch_.clear();
  batch_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status LazyWriter::Finish() {
  if (!batch_.empty()) {
    ADAMANT_RETURN_IF_ERROR(WriteBatch());
  }
  return store_.Flush();
}

}  // namespace adamant::parameter_server
