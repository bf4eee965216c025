#include "services/worker/core/sync/fetches/snapshot_fetch.h"

#include <algorithm>
#include <utility>

namespace adamant::worker {

bool SnapshotFetch::Want(DataEpoch epoch, std::uint64_t snapshot) {
  // Ids rise: batches that name an older one are of an evaluation that was given up.
  if (snapshot < newest_) {
    return false;
  }
  newest_ = snapshot;
  newest_of_epoch_ = epoch;
  weights_.SetNewest(snapshot);
  if (epoch < begun_epoch_) {
    End();
  } else if (snapshot != snapshot_) {
    wanted_ = snapshot;
  }
  return true;
}

// The evaluation may have been begun anew under another snapshot, by another controller, and this
// worker dispatched nothing of it: nobody keeps the one that its batches name.
bool SnapshotFetch::OnEpochBegun(DataEpoch epoch) {
  begun_epoch_ = std::max(begun_epoch_, epoch);
  if (newest_ == 0 || newest_of_epoch_ >= begun_epoch_) {
    return false;
  }
  End();
  return true;
}

void SnapshotFetch::End() {
  weights_.SetNewest(newest_ + 1);  // which the next one may be
  wanted_ = 0;
  fetches_.Drop(std::exchange(fetch_, 0));
}

bool SnapshotFetch::StartDue() {
  if (wanted_ == 0 || !weights_.Clear()) {
    return false;
  }
  fetches_.Drop(fetch_);
  snapshot_ = std::exchange(wanted_, 0);
  fetch_ = fetches_.Fetch(snapshot_);
  return true;
}

void SnapshotFetch::OnComplete() {
  fetches_.Drop(std::exchange(fetch_, 0));
  weights_.SetLoaded(snapshot_);
}

}  // namespace adamant::worker
