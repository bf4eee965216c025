#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// What a request is about: "/apis/apps/v1/namespaces/default/deployments/web/status" is
/// {"/apis/apps/v1/deployments", {"default", "web"}, "status"}.
struct ApiPlace {
  std::string resource;
  ObjectKey key;  ///< without a name: the collection, without a namespace: of all
  std::string subresource;
};

/// The objects of a fake API server and their history. As the real one: names are unique, writes
/// raise one resourceVersion, updates compare it (409), deletions compare UIDs (409), what changes
/// nothing is no write; a spec's change raises the generation; `status` changes by its subresource
/// only; objects with finalizers, and pods on a node, are marked as deleted first.
///
/// Unlike it: nothing is validated, and a strategic merge is a merge.
/// Threads: one.
class MemoryApiStore {
 public:
  struct Change {
    std::uint64_t version;
    std::string resource;
    Json before;  // null: created
    Json after;   // null: deleted
    Json last;    // of a deletion: the object with the deletion's version
  };

  explicit MemoryApiStore(const Clock& clock) : clock_(clock) {}

  absl::StatusOr<Json> Get(const ApiPlace& place) const;
  absl::StatusOr<Json> Create(const ApiPlace& place, Json object);
  absl::StatusOr<Json> Update(const ApiPlace& place, Json object);

  /// Server-side apply without conflicts: the fields of `object` are set, and those go that
  /// `manager` named the last time and no longer does. One with a resourceVersion is refused (409)
  /// where the object has another.
  absl::StatusOr<Json> Apply(const ApiPlace& place, const std::string& manager, Json object);
  absl::StatusOr<Json> Delete(const ApiPlace& place, const Json& options);

  /// Deletes what names owners of which none exists, as often as there is something to delete.
  void CollectGarbage();

  /// Forgets the history.
  void Compact() { compacted_ = version_; }

  [[nodiscard]] std::vector<const Json*> List(const ApiPlace& place) const;
  [[nodiscard]] const std::vector<Change>& history() const { return history_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] std::uint64_t compacted() const { return compacted_; }

 private:
  using Place = std::pair<std::string, ObjectKey>;

  Json Store(const ApiPlace& place, Json object);
  void Remove(const ApiPlace& place);
  [[nodiscard]] bool Owned(const Json& object) const;

  const Clock& clock_;
  std::uint64_t version_ = 1;
  std::uint64_t compacted_ = 0;
  std::uint64_t created_ = 0;
  std::map<Place, Json> objects_;
  std::map<std::pair<Place, std::string>, Json> applied_;  // by manager
  std::vector<Change> history_;
};

}  // namespace adamant::kube
