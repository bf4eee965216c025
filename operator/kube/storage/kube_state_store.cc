#include "operator/kube/storage/kube_state_store.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/core/state/state.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube/schema/job_object.h"
#include "operator/kube_client/base/base64.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/codec/buckets.h"

namespace adamant::kube {
namespace {

constexpr std::size_t kBucketsOfAMap = 64;

ObjectKey RestKey(const JobIdentity& job) { return {job.key.ns, job.key.name + "-state"}; }

std::optional<std::uint64_t> ParseNumber(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

std::string MapName(const JobIdentity& job, std::size_t index) {
  return job.key.name + "-" + std::to_string(index);
}

}  // namespace

KubeStateStore::KubeStateStore(Client client, JobIdentity job, std::string writer)
    : objects_(std::move(client), std::move(job), std::move(writer)),
      job_(objects_.job()),
      epochs_(objects_) {}

absl::StatusOr<controller::StateStore::Snapshot> KubeStateStore::Load() {
  ADAMANT_RETURN_IF_ERROR(LoadRest());
  ADAMANT_RETURN_IF_ERROR(LoadMaps());
  if (rest_.empty()) {
    ADAMANT_RETURN_IF_ERROR(CheckNothingIsLost());
    return Snapshot{.version = version_, .entries = {}};
  }
  ADAMANT_ASSIGN_OR_RETURN(controller::JobState state, controller::DecodeState(rest_));
  for (const Map& map : maps_) {
    state.buckets.insert(state.buckets.end(), map.buckets.begin(), map.buckets.end());
    state.term = std::max(state.term, map.term);  // of a controller that got no further
  }
  if (state.buckets.size() != state.histories.size()) {
    if (state.buckets.size() > state.histories.size() && state.histories.empty()) {
      state.buckets.clear();  // assigned, but not heard of by anybody
    } else {
      return absl::DataLossError("ShardMaps of " + ToString(job_.key) +
                                 " are missing: " + std::to_string(state.buckets.size()) +
                                 " buckets are there of " + std::to_string(state.histories.size()));
    }
  }
  return Snapshot{.version = version_, .entries = {{controller::kStateKey, Encode(state)}}};
}

absl::Status KubeStateStore::LoadRest() {
  version_ = 0;
  defaults_ = kDefaults;
  resource_version_.clear();
  rest_.clear();  // what an attempt has read that failed later counts no more
  const auto object = objects_.Get(kConfigMaps, RestKey(job_));
  if (absl::IsNotFound(object.status())) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(object.status());
  resource_version_ = ResourceVersionOf(*object);
  const auto version = ParseNumber(StringAt(*object, {"data", "version"}));
  const auto defaults = ParseNumber(StringAt(*object, {"data", "defaults"}, "1"));
  if (!version || !defaults) {
    return absl::DataLossError(ToString(RestKey(job_)) + " has no version");
  }
  version_ = *version;
  defaults_ = *defaults;
  ADAMANT_ASSIGN_OR_RETURN(rest_,
                           DecodeBase64(StringAt(*object, {"binaryData", controller::kStateKey})));
  return absl::OkStatus();
}

absl::Status KubeStateStore::LoadMaps() {
  ADAMANT_ASSIGN_OR_RETURN(Maps found, ReadMaps());
  maps_.clear();
  for (auto& [index, map] : found) {
    if (index != maps_.size()) {
      return absl::DataLossError("ShardMap " + job_.key.ns + "/" + MapName(job_, maps_.size()) +
                                 " is missing: somebody has deleted it");
    }
    maps_.push_back(std::move(map));
  }
  return absl::OkStatus();
}

// There are no ShardMaps before there is a state: where there are, it is being written, or deleted.
absl::Status KubeStateStore::CheckNothingIsLost() const {
  if (maps_.empty()) {
    return absl::OkStatus();
  }
  const auto object = objects_.Get(kConfigMaps, RestKey(job_));
  if (absl::IsNotFound(object.status())) {
    return absl::DataLossError("ConfigMap " + ToString(RestKey(job_)) +
                               " is missing: somebody has deleted it, and with it what the job's "
                               "controller knew");
  }
  return object.ok() ? absl::UnavailableError("another controller begins the job")
                     : object.status();
}

absl::StatusOr<KubeStateStore::Maps> KubeStateStore::ReadMaps() const {
  ADAMANT_ASSIGN_OR_RETURN(
      std::vector<Json> objects,
      objects_.client().List(
          kShardMaps, {.ns = job_.key.ns, .label_selector = kJobUidLabel + ("=" + job_.uid)}));
  Maps found;
  for (const Json& object : objects) {
    v1::ShardMap stored;
    ADAMANT_RETURN_IF_ERROR(ReadShardMap(object, stored));
    Map map{.resource_version = ResourceVersionOf(object),
            .own = objects_.IsOwn(object),
            .term = static_cast<std::uint64_t>(stored.term()),
            .buckets = {}};
    for (const v1::Configuration& bucket : stored.buckets()) {
      map.buckets.push_back(codec::Decode(bucket));
    }
    found[static_cast<std::size_t>(stored.first()) / kBucketsOfAMap] = std::move(map);
  }
  return found;
}

absl::Status KubeStateStore::CompareAndSwap(
    std::uint64_t version, const std::vector<controller::Persist::Entry>& entries) {
  std::optional<controller::JobState> state;
  for (const controller::Persist::Entry& entry : entries) {
    if (entry.key == controller::kStateKey) {
      ADAMANT_ASSIGN_OR_RETURN(state, controller::DecodeState(entry.value));
    } else {
      ADAMANT_RETURN_IF_ERROR(epochs_.Add(entry));
    }
  }
  if (version != version_) {
    return absl::AbortedError("the state of " + ToString(job_.key) + " has version " +
                              std::to_string(version_) + ", not " + std::to_string(version));
  }
  if (unconfirmed_) {
    ADAMANT_RETURN_IF_ERROR(FindOwnWrites());
  }
  unconfirmed_ = true;
  if (state) {
    ADAMANT_RETURN_IF_ERROR(WriteMaps(state->term, state->buckets));
    state->buckets.clear();
    rest_ = Encode(*state);
  }
  ADAMANT_RETURN_IF_ERROR(epochs_.Write([this] { return CheckIsOurs(); }));
  ADAMANT_RETURN_IF_ERROR(WriteRest());
  unconfirmed_ = false;
  ++version_;
  return absl::OkStatus();
}

absl::Status KubeStateStore::WriteMaps(std::uint64_t term,
                                       const std::vector<controller::Configuration>& buckets) {
  const std::size_t count = (buckets.size() + kBucketsOfAMap - 1) / kBucketsOfAMap;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = buckets.begin() + static_cast<std::ptrdiff_t>(i * kBucketsOfAMap);
    const auto end = buckets.begin() + static_cast<std::ptrdiff_t>(
                                           std::min(buckets.size(), (i + 1) * kBucketsOfAMap));
    Map map{.resource_version = i < maps_.size() ? maps_[i].resource_version : "",
            .own = true,
            .term = term,
            .buckets = {begin, end}};
    if (i < maps_.size() && maps_[i].term == term && maps_[i].buckets == map.buckets) {
      continue;
    }
    ADAMANT_RETURN_IF_ERROR(WriteMap(i, std::move(map)));
  }
  return absl::OkStatus();
}

absl::Status KubeStateStore::WriteMap(std::size_t index, Map map) {
  v1::ShardMap message;
  message.set_job(job_.key.name);
  message.set_job_uid(job_.uid);
  message.set_term(static_cast<std::int64_t>(map.term));
  message.set_first(static_cast<std::int64_t>(index * kBucketsOfAMap));
  message.set_count(static_cast<std::int64_t>(map.buckets.size()));
  for (const controller::Configuration& bucket : map.buckets) {
    codec::Encode(bucket, *message.add_buckets());
  }
  ADAMANT_ASSIGN_OR_RETURN(
      map.resource_version,
      objects_.Write(kShardMaps,
                     ShardMapObject(message, MapName(job_, index), job_.key.ns),
                     map.resource_version));
  maps_.resize(std::max(maps_.size(), index + 1));
  maps_[index] = std::move(map);
  return absl::OkStatus();
}

absl::Status KubeStateStore::WriteRest() {
  Json object = {
      {"metadata", {{"name", RestKey(job_).name}}},
      {"data",
       {{"version", std::to_string(version_ + 1)}, {"defaults", std::to_string(defaults_)}}}};
  if (!rest_.empty()) {
    object["binaryData"][controller::kStateKey] = EncodeBase64(rest_);
  }
  ADAMANT_ASSIGN_OR_RETURN(resource_version_,
                           objects_.Write(kConfigMaps, std::move(object), resource_version_));
  return absl::OkStatus();
}

// One that somebody has deleted no other controller can have written.
absl::Status KubeStateStore::CheckIsOurs() const {
  const auto object = objects_.Get(kConfigMaps, RestKey(job_));
  if (!object.ok()) {
    return absl::IsNotFound(object.status()) ? absl::OkStatus() : object.status();
  }
  return ResourceVersionOf(*object) == resource_version_ || objects_.IsOwn(*object)
             ? absl::OkStatus()
             : absl::AbortedError("another controller has written " + ToString(RestKey(job_)));
}

// What the last swap, which seemed to fail, has written after all is written again. What another
// has written must not be, be it of the same term: it may have acted on it.
absl::Status KubeStateStore::FindOwnWrites() {
  const auto object = objects_.Get(kConfigMaps, RestKey(job_));
  if (absl::IsNotFound(object.status())) {
    resource_version_.clear();
  } else {
    ADAMANT_RETURN_IF_ERROR(object.status());
    const std::string found = ResourceVersionOf(*object);
    if (found != resource_version_ && !objects_.IsOwn(*object)) {
      return absl::AbortedError("another controller has written " + ToString(RestKey(job_)));
    }
    resource_version_ = found;
  }
  ADAMANT_ASSIGN_OR_RETURN(Maps maps, ReadMaps());
  for (const auto& [i, map] : maps) {
    const bool unchanged = i < maps_.size() && maps_[i].resource_version == map.resource_version;
    if (!unchanged && !map.own) {
      return absl::AbortedError("another controller has written " + MapName(job_, i));
    }
    maps_.resize(std::max(maps_.size(), i + 1));
  }
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    maps_[i] = std::move(maps[i]);  // one that somebody has deleted is empty, and made anew
  }
  return absl::OkStatus();
}

}  // namespace adamant::kube
