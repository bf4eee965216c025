#include "operator/local/state/kv_state_store.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "operator/core/state/actions.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/kv_store.h"

namespace adamant::local {
namespace {

constexpr char kVersion[] = "version";
constexpr char kWriter[] = "writer";

}  // namespace

absl::StatusOr<std::uint64_t> KvStateStore::Version() const {
  const absl::StatusOr<std::string> stored = store_.Get(kVersion);
  if (absl::IsNotFound(stored.status())) {
    return std::uint64_t{0};
  }
  ADAMANT_RETURN_IF_ERROR(stored.status());
  std::uint64_t version = 0;
  const auto parsed = std::from_chars(stored->data(), stored->data() + stored->size(), version);
  if (parsed.ec != std::errc() || parsed.ptr != stored->data() + stored->size()) {
    return absl::DataLossError("the version of the controller's state is damaged");
  }
  return version;
}

absl::StatusOr<controller::StateStore::Snapshot> KvStateStore::Load() {
  Snapshot snapshot;
  ADAMANT_ASSIGN_OR_RETURN(snapshot.version, Version());
  ADAMANT_RETURN_IF_ERROR(store_.Scan("", [&](std::string_view key, std::string_view value) {
    if (key != kVersion && key != kWriter) {
      snapshot.entries.emplace(key, value);
    }
    return true;
  }));
  return snapshot;
}

absl::Status KvStateStore::CompareAndSwap(std::uint64_t version,
                                          const std::vector<controller::Persist::Entry>& entries) {
  ADAMANT_ASSIGN_OR_RETURN(const std::uint64_t stored, Version());
  ADAMANT_ASSIGN_OR_RETURN(const bool own, IsOwnUnconfirmedWrite(stored, version));
  if (stored != version && !own) {
    return absl::AbortedError("another controller has taken over: the stored state has version " +
                              std::to_string(stored) + ", this one knows " +
                              std::to_string(version));
  }
  unconfirmed_.insert(unconfirmed_.end(), entries.begin(), entries.end());
  std::vector<storage::Change> changes = {{.key = kVersion, .value = std::to_string(version + 1)},
                                          {.key = kWriter, .value = writer_}};
  for (const controller::Persist::Entry& entry : unconfirmed_) {
    changes.push_back({.key = entry.key, .value = entry.value});
  }
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("controller/store"));
  ADAMANT_RETURN_IF_ERROR(store_.Write(changes));
  ADAMANT_FAILPOINT("controller/stored");
  unconfirmed_.clear();
  return absl::OkStatus();
}

// What failed was stored after all, and nobody has written since.
absl::StatusOr<bool> KvStateStore::IsOwnUnconfirmedWrite(std::uint64_t stored,
                                                         std::uint64_t version) const {
  if (unconfirmed_.empty() || stored != version + 1) {
    return false;
  }
  ADAMANT_ASSIGN_OR_RETURN(const std::string writer, store_.Get(kWriter));
  return writer == writer_;
}

absl::StatusOr<std::vector<controller::EpochResult>> StoredResults(
    const controller::StateStore::Snapshot& snapshot) {
  std::vector<controller::EpochResult> results;
  for (const auto& [key, value] : snapshot.entries) {
    if (key.starts_with(controller::kResultPrefix)) {
      ADAMANT_ASSIGN_OR_RETURN(controller::EpochResult result, controller::DecodeResult(value));
      results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace adamant::local
