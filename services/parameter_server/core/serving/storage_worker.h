#pragma once

#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/serving/bucket_loader.h"
#include "services/parameter_server/core/storage/bucket_store.h"
#include "services/parameter_server/core/storage/scrubber.h"
#include "services/parameter_server/core/storage/storage_queue.h"

namespace adamant::parameter_server {

/// Does what waits for the disk.
/// Threads: one, that of the disk.
class StorageWorker {
 public:
  /// All must outlive this.
  StorageWorker(BucketTable& table,
                StorageQueue& queue,
                BucketStore& store,
                BucketLoader& loader,
                Scrubber& scrubber,
                const Clock& clock);

  /// Does all that is queued; see ParameterServer::DoStorage.
  absl::Status Run();

 private:
  absl::Status Do(StorageTasks& tasks);
  absl::Status PersistEntries(const std::vector<PersistTask>& persists);
  absl::Status StorePuts(const std::vector<PutTask>& puts);

  BucketTable& table_;
  StorageQueue& queue_;
  BucketStore& store_;
  BucketLoader& loader_;
  Scrubber& scrubber_;
  const Clock& clock_;
};

}  // namespace adamant::parameter_server
