#include "operator/kube/schema/job_object.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/schema/message_json.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/yaml_tree.h"

namespace adamant::kube {
namespace {

using Json = nlohmann::json;

/// The object without what only Kubernetes writes.
Json Manifest(const Json& object) {
  if (!object.is_object()) {
    return object;
  }
  Json manifest = object;
  manifest.erase("status");
  const auto metadata = manifest.find("metadata");
  if (metadata == manifest.end() || !metadata->is_object()) {
    return manifest;
  }
  Json kept = Json::object();
  for (const char* field : {"name", "namespace", "labels", "annotations"}) {
    if (metadata->contains(field)) {
      kept[field] = std::move((*metadata)[field]);
    }
  }
  *metadata = std::move(kept);
  return manifest;
}

}  // namespace

job::ParseResult ReadJob(const Json& object) {
  job::Problems problems("");
  const job::YamlNode root = ToNode(Manifest(object), problems);
  return job::ParseObject(root, problems);
}

absl::Status ReadStatus(const Json& object, v1::TrainingJobStatus& status) {
  const auto found = object.find("status");
  return found == object.end() ? absl::OkStatus() : ReadMessage(*found, status);
}

absl::Status ReadShardMap(const Json& object, v1::ShardMap& map) {
  Json fields = object;
  for (const char* field : {"apiVersion", "kind", "metadata"}) {
    fields.erase(field);
  }
  return ReadMessage(fields, map);
}

Json ShardMapObject(const v1::ShardMap& map,
                    const std::string& name,
                    const std::string& name_space) {
  Json object = MessageJson(map);
  object["apiVersion"] = std::string(kGroup) + "/" + kVersion;
  object["kind"] = "ShardMap";
  object["metadata"] = {{"name", name}, {"namespace", name_space}};
  return object;
}

}  // namespace adamant::kube
