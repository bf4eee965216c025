#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/buckets/records.h"

namespace adamant::parameter_server {

/// Reads records, and appends puts to the logs of their buckets.
/// Threads: any.
class RecordHandler {
 public:
  /// Both must outlive this.
  RecordHandler(BucketTable& table, const Clock& clock) : table_(table), clock_(clock) {}

  [[nodiscard]] RecordAnswer Get(std::string_view key) const;

  /// Sets a record if its version is `expected` (0: absent). `done` is called when all copies have
  /// it and it is on this disk, or when it is refused; perhaps from within.
  /// Error: InvalidArgument for an empty or oversized key or value; `done` is not called then.
  absl::Status Put(std::string_view key,
                   std::uint64_t expected,
                   std::string_view value,
                   RecordDone done);

 private:
  [[nodiscard]] BucketId BucketOf(std::string_view key) const;

  BucketTable& table_;
  const Clock& clock_;
};

}  // namespace adamant::parameter_server
