#include "operator/kube/kube_state_store.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/control/record_codec.h"
#include "operator/core/state.h"
#include "operator/kube/client/base64.h"
#include "operator/kube/client/json.h"
#include "operator/kube/custom_resources.h"
#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr std::size_t kBucketsOfAMap = 64;
constexpr char kWriter[] = "adamant.dev/writer";  // annotation: who wrote the object last

ObjectKey RestKey(const JobIdentity& job) { return {job.key.ns, job.key.name + "-state"}; }

std::string MapName(const JobIdentity& job, std::size_t index) {
  return job.key.name + "-" + std::to_string(index);
}

// Keys of a ConfigMap have no slashes.
std::string ToDataKey(std::string key) {
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

std::string FromDataKey(std::string key) {
  std::replace(key.begin(), key.end(), '.', '/');
  return key;
}

std::string WriterOf(const Json& object) {
  return StringAt(object, {"metadata", "annotations", kWriter});
}

}  // namespace

KubeStateStore::KubeStateStore(Client client, JobIdentity job, std::string writer)
    : client_(std::move(client)), job_(std::move(job)), writer_(std::move(writer)) {}

absl::Status KubeStateStore::Objection(const Json& object) const {
  if (StringAt(object, {"metadata", "labels", kJobUidLabel}) == job_.uid) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(ToString(KeyOf(object)) +
                                " is not of this job; is an earlier one of the same name still "
                                "being deleted?");
}

absl::StatusOr<controller::StateStore::Snapshot> KubeStateStore::Load() {
  ADAMANT_RETURN_IF_ERROR(LoadRest());
  ADAMANT_RETURN_IF_ERROR(LoadMaps());
  Snapshot snapshot{.version = version_, .entries = rest_};
  const auto stored = snapshot.entries.find(controller::kStateKey);
  if (stored == snapshot.entries.end()) {
    ADAMANT_RETURN_IF_ERROR(CheckNothingIsLost());
    return snapshot;
  }
  ADAMANT_ASSIGN_OR_RETURN(controller::JobState state, controller::DecodeState(stored->second));
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
  stored->second = Encode(state);
  return snapshot;
}

absl::Status KubeStateStore::LoadRest() {
  version_ = 0;
  resource_version_.clear();
  rest_.clear();  // what an attempt has read that failed later counts no more
  const auto object = client_.Get(kConfigMaps, RestKey(job_));
  if (absl::IsNotFound(object.status())) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(object.status());
  ADAMANT_RETURN_IF_ERROR(Objection(*object));
  resource_version_ = ResourceVersionOf(*object);
  const std::string version = StringAt(*object, {"data", "version"});
  const char* end = version.data() + version.size();
  if (const auto parsed = std::from_chars(version.data(), end, version_);
      parsed.ec != std::errc() || parsed.ptr != end) {
    return absl::DataLossError(ToString(RestKey(job_)) + " has no version");
  }
  if (const Json* entries = Find(*object, {"binaryData"})) {
    for (const auto& [key, value] : entries->items()) {
      ADAMANT_ASSIGN_OR_RETURN(rest_[FromDataKey(key)],
                               DecodeBase64(value.get_ref<const std::string&>()));
    }
  }
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
  const auto object = client_.Get(kConfigMaps, RestKey(job_));
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
      client_.List(kShardMaps,
                   {.ns = job_.key.ns, .label_selector = kJobUidLabel + ("=" + job_.uid)}));
  Maps found;
  for (const Json& object : objects) {
    v1::ShardMap stored;
    ADAMANT_RETURN_IF_ERROR(ReadShardMap(object, stored));
    Map map{.resource_version = ResourceVersionOf(object),
            .writer = WriterOf(object),
            .term = static_cast<std::uint64_t>(stored.term()),
            .buckets = {}};
    for (const v1::Bucket& bucket : stored.buckets()) {
      map.buckets.push_back(control::DecodeRecord(bucket));
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
      rest_[entry.key] = entry.value;
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
    rest_[controller::kStateKey] = Encode(*state);
  }
  ADAMANT_RETURN_IF_ERROR(WriteRest());
  unconfirmed_ = false;
  ++version_;
  return absl::OkStatus();
}

absl::Status KubeStateStore::WriteMaps(std::uint64_t term,
                                       const std::vector<controller::Bucket>& buckets) {
  const std::size_t count = (buckets.size() + kBucketsOfAMap - 1) / kBucketsOfAMap;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = buckets.begin() + static_cast<std::ptrdiff_t>(i * kBucketsOfAMap);
    const auto end = buckets.begin() + static_cast<std::ptrdiff_t>(
                                           std::min(buckets.size(), (i + 1) * kBucketsOfAMap));
    Map map{.resource_version = i < maps_.size() ? maps_[i].resource_version : "",
            .writer = writer_,
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
  for (const controller::Bucket& bucket : map.buckets) {
    control::EncodeRecord(bucket, *message.add_buckets());
  }
  ADAMANT_ASSIGN_OR_RETURN(map.resource_version,
                           Write(kShardMaps,
                                 ShardMapObject(message, MapName(job_, index), job_.key.ns),
                                 map.resource_version));
  maps_.resize(std::max(maps_.size(), index + 1));
  maps_[index] = std::move(map);
  return absl::OkStatus();
}

absl::Status KubeStateStore::WriteRest() {
  const ObjectKey key = RestKey(job_);
  Json object = {{"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                 {"data", {{"version", std::to_string(version_ + 1)}}}};
  for (const auto& [entry, value] : rest_) {
    object["binaryData"][ToDataKey(entry)] = EncodeBase64(value);
  }
  ADAMANT_ASSIGN_OR_RETURN(resource_version_,
                           Write(kConfigMaps, std::move(object), resource_version_));
  return absl::OkStatus();
}

absl::StatusOr<std::string> KubeStateStore::Write(const Resource& resource,
                                                  Json object,
                                                  const std::string& replaced) const {
  const ObjectKey key = KeyOf(object);
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
    ADAMANT_ASSIGN_OR_RETURN(const Json there, client_.Get(resource, key));
    ADAMANT_RETURN_IF_ERROR(Objection(there));
    return absl::AbortedError("another controller has written " + ToString(key));
  }
  ADAMANT_RETURN_IF_ERROR(written.status());
  return ResourceVersionOf(*written);
}

// What the last swap, which seemed to fail, has written after all is written again. What another
// has written must not be, be it of the same term: it may have acted on it.
absl::Status KubeStateStore::FindOwnWrites() {
  const auto object = client_.Get(kConfigMaps, RestKey(job_));
  if (absl::IsNotFound(object.status())) {
    resource_version_.clear();
  } else {
    ADAMANT_RETURN_IF_ERROR(object.status());
    ADAMANT_RETURN_IF_ERROR(Objection(*object));
    const std::string found = ResourceVersionOf(*object);
    if (found != resource_version_ && WriterOf(*object) != writer_) {
      return absl::AbortedError("another controller has written " + ToString(RestKey(job_)));
    }
    resource_version_ = found;
  }
  ADAMANT_ASSIGN_OR_RETURN(Maps maps, ReadMaps());
  for (const auto& [i, map] : maps) {
    const bool unchanged = i < maps_.size() && maps_[i].resource_version == map.resource_version;
    if (!unchanged && map.writer != writer_) {
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
