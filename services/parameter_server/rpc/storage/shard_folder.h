#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/service/service.h"
#include "services/common/storage/kv_store.h"

namespace adamant::parameter_server {

struct ShardFolder {
  std::unique_ptr<storage::KvStore> store;
  std::string damage = {};  ///< what was there is not used, for this reason; empty: all is well
};

/// Opens or creates the store of shards in `folder`. A damaged one is moved aside, to
/// `folder`.damaged in place of an earlier one, and an empty one begins: the server is worth as
/// much as one that has lost its disk, and gets its buckets from other copies.
/// Errors: those of SegmentStore::Open, but Unavailable for DataLoss.
absl::StatusOr<ShardFolder> OpenShardFolder(const std::filesystem::path& folder);

/// Returns the result of `open`. While that is a full disk, waits for room: raises an alarm with
/// the controller, which is a heartbeat too, and tries again after `pause`.
/// Errors: those of `open`, but Cancelled for a full disk once the process is to end.
absl::StatusOr<ShardFolder> OpenWithRoom(const std::function<absl::StatusOr<ShardFolder>()>& open,
                                         service::ControllerLink& controller,
                                         std::chrono::milliseconds pause);

}  // namespace adamant::parameter_server
