#include "services/parameter_server/rpc/storage/shard_folder.h"

#include <thread>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/system/files.h"
#include "services/common/storage/rocksdb/set_aside.h"
#include "services/common/storage/segments/segment_store.h"

namespace adamant::parameter_server {
namespace {

// Of a disk that fails; a restart may cure it.
absl::Status Unavailable(const std::string& damage, const absl::Status& status) {
  return absl::UnavailableError(damage + "; " + std::string(status.message()));
}

}  // namespace

absl::StatusOr<ShardFolder> OpenShardFolder(const std::filesystem::path& folder) {
  auto store = storage::SegmentStore::Open(folder);
  if (store.ok()) {
    return ShardFolder{.store = *std::move(store)};
  }
  if (!absl::IsDataLoss(store.status())) {
    return store.status();
  }
  std::string damage(store.status().message());
  LogError("the store is damaged: it is moved aside, and the server begins without it",
           {{"error", damage}, {"moved to", folder.string() + ".damaged"}});
  if (const absl::Status moved = storage::SetAside(folder); !moved.ok()) {
    return Unavailable(damage, moved);
  }
  store = storage::SegmentStore::Open(folder);
  if (!store.ok()) {
    return Unavailable(damage, store.status());
  }
  return ShardFolder{.store = *std::move(store), .damage = std::move(damage)};
}

absl::StatusOr<ShardFolder> OpenWithRoom(const std::function<absl::StatusOr<ShardFolder>()>& open,
                                         service::ControllerLink& controller,
                                         std::chrono::milliseconds pause) {
  while (true) {
    absl::StatusOr<ShardFolder> folder = open();
    if (!absl::IsResourceExhausted(folder.status())) {
      return folder;
    }
    if (controller.stopping()) {
      return absl::CancelledError(folder.status().message());
    }
    controller.Send(protocol::Heartbeat{
        .progress = protocol::ParameterServerProgress{.alarm = DescribeFull(folder.status())}});
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace adamant::parameter_server
