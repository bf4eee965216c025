#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/storage/kv_store.h"

namespace adamant::parameter_server {

/// Writes many large values in batches of bounded memory, and makes them durable at the end.
/// Threads: one at a time. Errors of both methods are those of KvStore.
class LazyWriter {
 public:
  explicit LazyWriter(storage::KvStore& store) : store_(store) {}  // must outlive this

  absl::Status Put(std::string key, std::string value);

  /// All values put since the start are durable when this succeeds.
  absl::Status Finish();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  absl::Status WriteBatch();

  storage::KvStore& store_;
  std::vector<storage::Change> batch_;
  std::uint64_t batch_bytes_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace adamant::parameter_server
