#include "operator/kube/storage/epoch_objects.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "operator/core/state/state.h"
#include "operator/kube_client/base/base64.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

// Of a result of so many bytes in an object: base64, and its name twice, as the API notes who has
// written it.
constexpr std::size_t SizeOfRow(std::size_t bytes) { return (bytes + 2) / 3 * 4 + 128; }

static_assert(kEpochsOfAnObject * SizeOfRow(controller::kLargestResult) <= kLargestEpochObject);

constexpr std::size_t kDigits = 20;  // so that names sort as epochs do

std::string NameOf(const std::string& job, std::uint64_t index) {
  return job + "-epochs-" + std::to_string(index);
}

std::uint64_t IndexOf(DataEpoch epoch) { return (epoch - 1) / kEpochsOfAnObject; }

// 0: it is none.
std::uint64_t NumberIn(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
}

bool IsChanged(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status);
}

}  // namespace

std::string EpochsName(const std::string& job, DataEpoch epoch) {
  return NameOf(job, IndexOf(epoch));
}

std::string EpochObjects::EntryOf(RowId id) {
  std::string digits = std::to_string(id.epoch);
  digits.insert(0, kDigits - digits.size(), '0');
  const std::string attempt = id.attempt > 1 ? "." + std::to_string(id.attempt) : "";
  return kEpochEntryPrefix + digits + attempt;
}

std::optional<EpochObjects::RowId> EpochObjects::IdIn(std::string_view name,
                                                      std::string_view prefix) {
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  RowId id;
  if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) {
    id.attempt = NumberIn(name.substr(dot + 1));
    if (id.attempt < 2) {
      return std::nullopt;
    }
    name = name.substr(0, dot);
  }
  id.epoch = NumberIn(name);
  return id.epoch == 0 ? std::nullopt : std::optional(id);
}

absl::Status EpochObjects::Add(const controller::Persist::Entry& result) {
  const std::optional<RowId> id = IdIn(result.key, controller::kResultPrefix);
  if (!id) {
    return absl::InvalidArgumentError("there is no place for an entry " + result.key);
  }
  added_[IndexOf(id->epoch)][*id] = result.value;
  return absl::OkStatus();
}

absl::Status EpochObjects::Write(const Check& is_ours) {
  while (!added_.empty()) {
    const auto& [index, rows] = *added_.begin();
    ADAMANT_RETURN_IF_ERROR(WriteObject(index, rows, is_ours));
    added_.erase(added_.begin());
  }
  return absl::OkStatus();
}

// The state is asked after the object was read: who takes over later changes the object later, and
// then this write is refused.
absl::Status EpochObjects::WriteObject(std::uint64_t index,
                                       const Rows& added,
                                       const Check& is_ours) {
  if (newest_ && newest_->index == index) {
    const absl::Status replaced = Replace(index, added);
    if (!IsChanged(replaced)) {
      return replaced;
    }
  }
  ADAMANT_RETURN_IF_ERROR(Read(index, added.begin()->first.epoch));
  ADAMANT_RETURN_IF_ERROR(is_ours());
  return Replace(index, added);
}

absl::Status EpochObjects::Read(std::uint64_t index, std::uint64_t first_added) {
  Object read{.index = index, .resource_version = {}, .rows = {}};
  if (newest_ && newest_->index == index) {
    read.rows = newest_->rows;  // they count, whatever is found
  }
  const ObjectKey key{objects_.job().key.ns, NameOf(objects_.job().key.name, index)};
  const auto object = objects_.Get(kConfigMaps, key);
  if (!object.ok() && !absl::IsNotFound(object.status())) {
    return object.status();
  }
  const Json* entries = nullptr;
  if (object.ok()) {
    read.resource_version = ResourceVersionOf(*object);
    entries = Find(*object, {"binaryData"});
  }
  if (entries != nullptr && entries->is_object()) {
    for (const auto& [name, value] : entries->items()) {
      const std::optional<RowId> id = IdIn(name, kEpochEntryPrefix);
      const auto bytes = DecodeBase64(value.is_string() ? value.get<std::string>() : "");
      if (id && bytes.ok()) {
        read.rows.emplace(*id, *bytes);
      }
    }
  }
  const std::uint64_t first = index * kEpochsOfAnObject + 1;
  if (read.rows.empty() && first < first_added) {
    loss_ = "there are no results of epochs " + std::to_string(first) + " to " +
            std::to_string(first_added - 1) + " any more: ConfigMap " + ToString(key) +
            (object.ok() ? " has none" : " is missing");
  }
  newest_ = std::move(read);
  return absl::OkStatus();
}

// Keeps an object within its size. What counts, the last result of each epoch, always fits.
void EpochObjects::DropOldest(Rows& rows) {
  std::size_t size = 0;
  std::map<std::uint64_t, std::uint64_t> last;  // attempt, by epoch
  for (const auto& [id, row] : rows) {
    size += SizeOfRow(row.size());
    last[id.epoch] = id.attempt;
  }
  for (auto row = rows.begin(); row != rows.end() && size > kLargestEpochObject;) {
    const bool undone = row->first.attempt < last[row->first.epoch];
    size -= undone ? SizeOfRow(row->second.size()) : 0;
    row = undone ? rows.erase(row) : std::next(row);
  }
}

// Results of later epochs are of a controller that got no further than to write them.
absl::Status EpochObjects::Replace(std::uint64_t index, const Rows& added) {
  Rows rows = added;
  rows.insert(newest_->rows.begin(), newest_->rows.upper_bound(added.rbegin()->first));
  DropOldest(rows);
  Json object = {{"metadata", {{"name", NameOf(objects_.job().key.name, index)}}}};
  for (const auto& [id, row] : rows) {
    object["binaryData"][EntryOf(id)] = EncodeBase64(row);
  }
  ADAMANT_ASSIGN_OR_RETURN(
      std::string version,
      objects_.Write(kConfigMaps, std::move(object), newest_->resource_version));
  newest_ = Object{.index = index, .resource_version = std::move(version), .rows = std::move(rows)};
  return absl::OkStatus();
}

std::optional<std::string> EpochObjects::TakeLoss() { return std::exchange(loss_, std::nullopt); }

}  // namespace adamant::kube
