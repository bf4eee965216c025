#include "services/parameter_server/core/storage/stored_state.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/storage/stored_bucket.h"

namespace adamant::parameter_server {
namespace {

constexpr auto kKeep = std::chrono::minutes(1);  // a group that starts together is assigned soon

}  // namespace

StoredState::StoredState(Opener opener,
                         const BucketStore& buckets,
                         storage::KvStore& store,
                         StorageQueue& queue,
                         const Clock& clock)
    : opener_(std::move(opener)), buckets_(buckets), store_(store), queue_(queue), clock_(clock) {}

absl::Status StoredState::Read(const ParallelFor& parallel_for) {
  const ShardCatalog& catalog = buckets_.catalog();
  const std::uint32_t count = catalog.layout().buckets();
  StoredBuckets found;
  if (!opened_before_) {  // a write that fails may have marked the store all the same
    ADAMANT_ASSIGN_OR_RETURN(is_of_another_job_, IsOfAnotherJob(catalog.job_uid(), store_));
    ADAMANT_ASSIGN_OR_RETURN(opened_before_,
                             LoadIncarnation(catalog.job_uid(), opener_.self.slot, store_));
  }
  found.previous_incarnation = *opened_before_;
  ADAMANT_ASSIGN_OR_RETURN(auto marked, MarkedBuckets(store_));
  std::erase_if(marked, [&](BucketId bucket) { return bucket >= count; });
  std::vector<absl::StatusOr<StoredContent>> contents(marked.size());
  parallel_for(marked.size(), [&](std::size_t i) { contents[i] = buckets_.Load(marked[i]); });
  std::map<BucketId, StoredContent> kept;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (!contents[i].ok() && !IsContentProblem(contents[i].status())) {
      return contents[i].status();
    }
    found.buckets.push_back(Describe(marked[i], contents[i]));
    NameFolder(found.buckets.back().detail);
    if (contents[i].ok()) {
      kept.emplace(marked[i], *std::move(contents[i]));
    }
  }
  std::string why = opener_.damage;
  if (is_of_another_job_ && marked.empty()) {  // it keeps checkpoints alone once it has succeeded
    why = "what is stored is of another job";
    NameFolder(why);
  }
  for (BucketId bucket = 0; !why.empty() && bucket < count; ++bucket) {
    found.buckets.push_back({.bucket = bucket, .complete = false, .detail = why});
  }
  ADAMANT_FAILPOINT("server/start");
  // What is stored counts only with the mark: it is the proof that whoever opened the folder before
  // has ended.
  const std::uint64_t highest = std::max(found.previous_incarnation, opener_.self.incarnation);
  const absl::Status opened = store_.Write(
      {StoreIncarnation(catalog.job_uid(), {.slot = opener_.self.slot, .incarnation = highest})});
  if (absl::IsResourceExhausted(opened)) {
    queue_.RaiseDiskFull(opened);
  }
  ADAMANT_RETURN_IF_ERROR(opened);
  queue_.ClearAlarm();
  const MutexLock lock(mutex_);
  found_ = std::move(found);
  kept_ = std::move(kept);
  kept_until_ = clock_.Now() + kKeep;
  return absl::OkStatus();
}

// A record does not know where it lies; what tells of a file names it already.
void StoredState::NameFolder(std::string& detail) const {
  if (!detail.empty() && !opener_.folder.empty() &&
      detail.find(opener_.folder) == std::string::npos) {
    detail = opener_.folder + ": " + detail;
  }
}

StoredBuckets StoredState::Get() const {
  const MutexLock lock(mutex_);
  return found_;
}

void StoredState::Forget(BucketId id) {
  const MutexLock lock(mutex_);
  std::erase_if(found_.buckets, [&](const StoredBucket& stored) { return stored.bucket == id; });
}

absl::StatusOr<StoredContent> StoredState::Take(BucketId id) {
  {
    const MutexLock lock(mutex_);
    if (auto kept = kept_.extract(id); !kept.empty()) {
      return std::move(kept.mapped());
    }
  }
  return buckets_.Load(id);
}

void StoredState::Drop(BucketId id) {
  const MutexLock lock(mutex_);
  kept_.erase(id);
}

void StoredState::DropOld() {
  const MutexLock lock(mutex_);
  if (clock_.Now() >= kept_until_) {
    kept_.clear();
  }
}

}  // namespace adamant::parameter_server
