#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/state/state_store.h"
#include "operator/kube/storage/epoch_objects.h"
#include "operator/kube/storage/stored_objects.h"

namespace adamant::kube {

/// A controller's state in the Kubernetes API: the buckets' configurations in ShardMaps of 64,
/// which users read, the epochs' results in EpochObjects, the rest in the ConfigMap `<job>-state`.
/// Every object changes by compare-and-swap on its resourceVersion.
///
/// A swap writes the ShardMaps that changed first, then the results that are new, and the ConfigMap
/// last: until that has succeeded nobody acts on the configurations, and who loads them finds each
/// complete in itself. All ShardMaps are written when the term rises, so that an older controller's
/// next write to any of them fails. Source: docs/design/0003-operator.md.
/// Threads: one at a time.
class KubeStateStore final : public controller::StateStore {
 public:
  /// `writer` names this controller among all that ever write; it must be random.
  KubeStateStore(Client client, JobIdentity job, std::string writer);
  KubeStateStore(const KubeStateStore&) = delete;
  KubeStateStore& operator=(const KubeStateStore&) = delete;

  /// Reads the state, until it succeeds, before the first swap; results are not read. Errors: those
  /// of the client; FailedPrecondition while objects have the state's names that are not of this
  /// job; Unavailable while another controller begins the job; DataLoss when something is damaged,
  /// or was deleted by somebody.
  absl::StatusOr<Snapshot> Load() override;

  absl::Status CompareAndSwap(std::uint64_t version,
                              const std::vector<controller::Persist::Entry>& entries) override;

  /// Returns true if the job was begun when its default for `copies` was 1. Call after Load.
  [[nodiscard]] bool has_old_defaults() const { return defaults_ < kDefaults; }

  /// Asks whether this controller was the last to write the state, or to read it before anybody has
  /// written; else Aborted. A state that was deleted is still ours. Errors: those of the client.
  absl::Status CheckIsOurs() const;

  /// Returns what a swap has found to be lost though the job goes on, as it has to be told, once.
  std::optional<std::string> TakeLoss() { return epochs_.TakeLoss(); }

 private:
  static constexpr std::uint64_t kDefaults = 2;  // the version of defaults that jobs begin with now

  // A ShardMap as it was read or written last.
  struct Map {
    std::string resource_version;
    bool own = false;
    std::uint64_t term = 0;
    std::vector<controller::Configuration> buckets;
  };
  using Maps = std::map<std::size_t, Map>;  // by index

  absl::Status LoadRest();
  absl::Status LoadMaps();
  absl::Status CheckNothingIsLost() const;
  absl::StatusOr<Maps> ReadMaps() const;
  absl::Status WriteMaps(std::uint64_t term, const std::vector<controller::Configuration>& buckets);
  absl::Status WriteMap(std::size_t index, Map map);
  absl::Status WriteRest();

  absl::Status FindOwnWrites();

  const StoredObjects objects_;
  const JobIdentity& job_;

  std::uint64_t version_ = 0;
  std::uint64_t defaults_ = kDefaults;  // the version that the job was begun with
  std::string resource_version_;        // of the ConfigMap; empty: there is none
  std::string rest_;                    // the JobState in it, without configurations; empty: none
  std::vector<Map> maps_;
  EpochObjects epochs_;
  bool unconfirmed_ = false;  // a write may have been carried out though it seemed to fail
};

}  // namespace adamant::kube
