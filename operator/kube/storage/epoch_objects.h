#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/kube/storage/stored_objects.h"
#include "services/common/base/ids.h"

namespace adamant::kube {

/// Number of epochs with results in one object, and its bytes at most, where the API takes a MiB.
/// Each end of an epoch writes one object anew, of 70 KiB on average.
inline constexpr std::uint64_t kEpochsOfAnObject = 250;
inline constexpr std::size_t kLargestEpochObject = std::size_t{512} << 10;

/// Entries of an object, and so the files of a pod that mounts it: this, the epoch in 20 digits
/// and, from the second attempt on, "." and the attempt.
inline constexpr char kEpochEntryPrefix[] = "epoch.";

/// "mnist-epochs-0": the ConfigMap with the result of this epoch, counted from 1.
std::string EpochsName(const std::string& job, DataEpoch epoch);

/// The results of a job's epochs, in ConfigMaps `<job>-epochs-<n>`, an entry each. Controllers only
/// write them: they are read by the pod that writes the job's metrics, and lead to nothing else.
/// Where training diverged and the job went back, an epoch has an entry of each attempt; the oldest
/// of those that were undone go when an object would get too large.
///
/// Results are written before the state that says that their epochs have ended, and who may write
/// them is whose that state is: where an object is not as this controller has left it, that is
/// asked. So what a controller leaves that got no further, or that was replaced, is written over
/// when the epoch ends again.
/// Threads: one.
class EpochObjects {
 public:
  /// Tells whether the state is still as this controller read or wrote it last; else Aborted.
  using Check = std::function<absl::Status()>;

  /// `objects` must outlive this.
  explicit EpochObjects(const StoredObjects& objects) : objects_(objects) {}

  /// A result that is to be written. InvalidArgument if the key is none of a result.
  absl::Status Add(const controller::Persist::Entry& result);

  /// Writes what was added; what could not be written stays. Errors: those of the client and of
  /// `is_ours`; Aborted when another controller writes at the same time.
  absl::Status Write(const Check& is_ours);

  /// Results that were found to be missing, as they have to be told, once.
  std::optional<std::string> TakeLoss();

 private:
  // Which result it is; in the order in which epochs end.
  struct RowId {
    std::uint64_t attempt = 1;
    DataEpoch epoch = 0;

    auto operator<=>(const RowId&) const = default;
  };
  using Rows = std::map<RowId, std::string>;  // encoded

  static std::optional<RowId> IdIn(std::string_view name, std::string_view prefix);
  static std::string EntryOf(RowId id);
  static void DropOldest(Rows& rows);

  // The object that was read or written last.
  struct Object {
    std::uint64_t index = 0;
    std::string resource_version;  // empty: it does not exist
    Rows rows;
  };

  absl::Status WriteObject(std::uint64_t index, const Rows& added, const Check& is_ours);
  absl::Status Read(std::uint64_t index, std::uint64_t first_added);
  absl::Status Replace(std::uint64_t index, const Rows& added);

  const StoredObjects& objects_;
  std::map<std::uint64_t, Rows> added_;  // by index of the object
  std::optional<Object> newest_;
  std::optional<std::string> loss_;
};

}  // namespace adamant::kube
