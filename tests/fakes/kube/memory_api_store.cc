#include "tests/fakes/kube/memory_api_store.h"

#include <set>

#include "operator/kube_client/base/time.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

std::string NameOf(const ApiPlace& place) {
  return place.resource.substr(place.resource.rfind('/') + 1) + " \"" + place.key.name + "\"";
}

bool IsPod(const ApiPlace& place) { return place.resource == "/api/v1/pods"; }

bool HasFinalizers(const Json& object) {
  const Json* finalizers = Find(object, {"metadata", "finalizers"});
  return finalizers != nullptr && !finalizers->empty();
}

bool IsBeingDeleted(const Json& object) {
  return Find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

// What a writer may not choose.
void KeepIdentity(const Json& before, Json& object) {
  for (const char* field : {"name",
                            "namespace",
                            "uid",
                            "creationTimestamp",
                            "generation",
                            "deletionTimestamp",
                            "deletionGracePeriodSeconds",
                            "resourceVersion"}) {
    if (const Json* value = Find(before, {"metadata", field}); value != nullptr) {
      object["metadata"][field] = *value;
    } else {
      object["metadata"].erase(field);
    }
  }
}

// A merge patch that takes away what `before` names and `after` does not.
Json Removals(const Json& before, const Json& after) {
  Json patch = Json::object();
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) {
      patch[key] = nullptr;
    } else if (value.is_object() && after[key].is_object()) {
      if (Json inner = Removals(value, after[key]); !inner.empty()) {
        patch[key] = std::move(inner);
      }
    }
  }
  return patch;
}

}  // namespace

absl::StatusOr<Json> MemoryApiStore::Get(const ApiPlace& place) const {
  const auto found = objects_.find({place.resource, place.key});
  if (found == objects_.end()) {
    return absl::NotFoundError(NameOf(place) + " not found");
  }
  return found->second;
}

absl::StatusOr<Json> MemoryApiStore::Create(const ApiPlace& place, Json object) {
  ApiPlace at = place;
  at.key.name = StringAt(object, {"metadata", "name"});
  ++created_;
  if (at.key.name.empty()) {
    at.key.name = StringAt(object, {"metadata", "generateName"}) + std::to_string(created_);
  }
  if (objects_.contains({at.resource, at.key})) {
    return absl::AlreadyExistsError(NameOf(at) + " already exists");
  }
  Json& metadata = object["metadata"];
  metadata["name"] = at.key.name;
  if (!at.key.ns.empty()) {
    metadata["namespace"] = at.key.ns;
  }
  metadata["uid"] = "uid-" + std::to_string(created_);
  metadata["creationTimestamp"] = FormatTime(clock_.WallNow());
  metadata["generation"] = 1;
  object.erase("status");
  if (IsPod(at)) {
    object["status"] = {{"phase", "Pending"}};
  }
  return Store(at, std::move(object));
}

absl::StatusOr<Json> MemoryApiStore::Update(const ApiPlace& place, Json object) {
  ADAMANT_ASSIGN_OR_RETURN(const Json before, Get(place));
  const std::string version = ResourceVersionOf(object);
  const std::string uid = UidOf(object);
  if ((!version.empty() && version != ResourceVersionOf(before)) ||
      (!uid.empty() && uid != UidOf(before))) {
    return absl::AbortedError("Operation cannot be fulfilled on " + NameOf(place) +
                              ": the object has been modified");
  }
  Json after = before;
  if (place.subresource == "status") {
    after["status"] = object.value("status", Json::object());
  } else {
    after = std::move(object);
    after.erase("status");
    if (before.contains("status")) {
      after["status"] = before["status"];
    }
    KeepIdentity(before, after);
    if (after.value("spec", Json()) != before.value("spec", Json())) {
      after["metadata"]["generation"] = IntAt(before, {"metadata", "generation"}) + 1;
    }
  }
  if (after == before) {
    return before;
  }
  const bool ends = IsBeingDeleted(after) && HasFinalizers(before) && !HasFinalizers(after);
  Json stored = Store(place, std::move(after));
  if (ends && !IsPod(place)) {
    Remove(place);
  }
  return stored;
}

absl::StatusOr<Json> MemoryApiStore::Apply(const ApiPlace& place,
                                           const std::string& manager,
                                           Json object) {
  const absl::StatusOr<Json> before = Get(place);
  Json& applied = applied_[{{place.resource, place.key}, manager + "/" + place.subresource}];
  if (!before.ok()) {
    if (!place.subresource.empty()) {
      return before.status();
    }
    applied = object;
    return Create(place, std::move(object));
  }
  Json after = *before;
  after.merge_patch(Removals(applied, object));
  after.merge_patch(object);
  if (ResourceVersionOf(object).empty()) {
    after["metadata"]["resourceVersion"] = ResourceVersionOf(*before);
  }
  ADAMANT_ASSIGN_OR_RETURN(Json stored, Update(place, std::move(after)));
  applied = std::move(object);
  return stored;
}

absl::StatusOr<Json> MemoryApiStore::Delete(const ApiPlace& place, const Json& options) {
  ADAMANT_ASSIGN_OR_RETURN(Json object, Get(place));
  const std::string uid = StringAt(options, {"preconditions", "uid"});
  const std::string version = StringAt(options, {"preconditions", "resourceVersion"});
  if ((!uid.empty() && uid != UidOf(object)) ||
      (!version.empty() && version != ResourceVersionOf(object))) {
    return absl::AbortedError("Precondition failed: " + NameOf(place) + " is another one");
  }
  const bool on_node = IsPod(place) && !StringAt(object, {"spec", "nodeName"}).empty();
  const bool graceful = on_node && IntAt(options, {"gracePeriodSeconds"}, 30) > 0;
  if (!graceful && !HasFinalizers(object)) {
    Remove(place);
    return object;
  }
  if (IsBeingDeleted(object)) {
    return object;
  }
  object["metadata"]["deletionTimestamp"] = FormatTime(clock_.WallNow());
  return Store(place, std::move(object));
}

void MemoryApiStore::CollectGarbage() {
  for (bool again = true; again;) {
    again = false;
    const std::map<Place, Json> objects = objects_;
    for (const auto& [place, object] : objects) {
      if (!IsBeingDeleted(object) && !Owned(object)) {
        again = Delete({place.first, place.second, ""}, Json::object()).ok() || again;
      }
    }
  }
}

std::vector<const Json*> MemoryApiStore::List(const ApiPlace& place) const {
  std::vector<const Json*> found;
  for (const auto& [at, object] : objects_) {
    if (at.first == place.resource && (place.key.ns.empty() || at.second.ns == place.key.ns)) {
      found.push_back(&object);
    }
  }
  return found;
}

Json MemoryApiStore::Store(const ApiPlace& place, Json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  Json& stored = objects_[{place.resource, place.key}];
  history_.push_back({version_, place.resource, std::move(stored), object, nullptr});
  stored = object;
  return object;
}

void MemoryApiStore::Remove(const ApiPlace& place) {
  const auto found = objects_.find({place.resource, place.key});
  Json last = found->second;
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  history_.push_back(
      {version_, place.resource, std::move(found->second), nullptr, std::move(last)});
  objects_.erase(found);
  std::erase_if(applied_, [&place](const auto& entry) {
    return entry.first.first == Place(place.resource, place.key);
  });
}

// Whether one of the owners that the object names exists, or it names none.
bool MemoryApiStore::Owned(const Json& object) const {
  const Json* owners = Find(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || owners->empty()) {
    return true;
  }
  std::set<std::string> uids;
  for (const Json& owner : *owners) {
    uids.insert(StringAt(owner, {"uid"}));
  }
  for (const auto& [place, other] : objects_) {
    if (uids.contains(UidOf(other))) {
      return true;
    }
  }
  return false;
}

}  // namespace adamant::kube
