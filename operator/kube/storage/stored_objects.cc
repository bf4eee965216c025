#include "operator/kube/storage/stored_objects.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/api/orphans.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr char kWriter[] = "adamant.dev/writer";  // annotation

}  // namespace

StoredObjects::StoredObjects(Client client, JobIdentity job, std::string writer)
    : client_(std::move(client)), job_(std::move(job)), writer_(std::move(writer)) {}

absl::StatusOr<Json> StoredObjects::Get(const Resource& resource, const ObjectKey& key) const {
  ADAMANT_ASSIGN_OR_RETURN(Json object, client_.Get(resource, key));
  if (!IsOf(object, job_)) {
    return MakeWay(client_, resource, object, job_);
  }
  return object;
}

absl::StatusOr<std::string> StoredObjects::Write(const Resource& resource,
                                                 Json object,
                                                 const std::string& replaced) const {
  const ObjectKey key{job_.key.ns, StringAt(object, {"metadata", "name"})};
  Json& metadata = object["metadata"];
  metadata = MetadataOf(job_, key.name);
  metadata["annotations"][kWriter] = writer_;
  absl::StatusOr<Json> written;
  if (replaced.empty()) {
    written = client_.Create(resource, std::move(object));
  } else {
    metadata["resourceVersion"] = replaced;
    written = client_.Update(resource, std::move(object));
  }
  if (absl::IsAlreadyExists(written.status())) {
    ADAMANT_RETURN_IF_ERROR(Get(resource, key).status());
    return absl::AbortedError("another controller has written " + ToString(key));
  }
  ADAMANT_RETURN_IF_ERROR(written.status());
  return ResourceVersionOf(*written);
}

bool StoredObjects::IsOwn(const Json& object) const {
  return StringAt(object, {"metadata", "annotations", kWriter}) == writer_;
}

}  // namespace adamant::kube
