#include "operator/kube/resources/server_claims.h"

#include <nlohmann/json.hpp>

#include "operator/kube/api/orphans.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {

absl::Status ServerClaims::Make(const v1::TrainingJob& spec,
                                controller::SlotId server,
                                std::uint64_t volume) {
  const Json claim = ClaimObject(writer_.job(), spec, server.slot, volume);
  const std::string name = KeyOf(claim).name;
  ADAMANT_ASSIGN_OR_RETURN(const std::string uid,
                           writer_.CreateOnce(kPersistentVolumeClaims, claim));
  const auto [known, is_new] = uids_.try_emplace(name, uid);
  if (!is_new && !uid.empty() && known->second != uid) {
    known->second = uid;
    writer_.Record(true,
                   "ClaimDeleted",
                   controller::ToString(server) + " begins anew on an empty volume: its claim " +
                       name + " was deleted, and is made again");
  }
  return absl::OkStatus();
}

absl::Status ServerClaims::Delete(std::uint32_t slot, std::uint64_t volume) {
  const std::string name = ClaimName(writer_.job().key.name, slot, volume);
  const absl::Status deleted =
      DeleteIfOwn(writer_.client(), kPersistentVolumeClaims, name, writer_.job());
  writer_.Note("delete claim " + name, deleted);
  return deleted;
}

absl::Status ServerClaims::DeleteLeft(const Volumes& in_use) {
  for (std::uint32_t slot = 0; slot < in_use.size(); ++slot) {
    std::uint64_t& deleted = deleted_[slot];
    while (deleted + 1 < in_use[slot]) {
      ADAMANT_RETURN_IF_ERROR(Delete(slot, deleted + 1));
      ++deleted;
    }
  }
  return absl::OkStatus();
}

absl::Status ServerClaims::DeleteAll(const Volumes& in_use) {
  absl::Status status;
  for (std::uint32_t slot = 0; slot < in_use.size(); ++slot) {
    for (std::uint64_t volume = 1; volume <= in_use[slot]; ++volume) {
      status.Update(Delete(slot, volume));
    }
  }
  return status;
}

}  // namespace adamant::kube
