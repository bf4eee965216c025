#include "operator/kube/schema/crd/crd.h"

#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/schema/crd/open_api.h"
#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/job/yaml/comments.h"

namespace adamant::kube {
namespace {

using Json = nlohmann::ordered_json;

struct Names {
  std::string kind;
  std::string plural;
  std::string short_name;
};

Json Column(const std::string& name, const std::string& type, const std::string& path) {
  return {{"name", name}, {"type", type}, {"jsonPath", path}};
}

Json AgeColumn() { return Column("Age", "date", ".metadata.creationTimestamp"); }

/// The fields that every object has, before those of `schema`.
Json WithObjectFields(Json schema, Json metadata) {
  Json properties = {
      {"apiVersion", {{"description", "Version of this schema."}, {"type", "string"}}},
      {"kind", {{"description", "Kind of the resource."}, {"type", "string"}}},
      {"metadata", std::move(metadata)}};
  properties.update(schema["properties"]);
  schema["properties"] = std::move(properties);
  return schema;
}

Json Definition(const Names& names, const Json& content) {
  Json version = {{"name", kVersion}, {"served", true}, {"storage", true}};
  version.update(content);
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata",
           {{"name", names.plural + "." + kGroup},
            {"labels", {{"app.kubernetes.io/part-of", "adamant"}}}}},
          {"spec",
           {{"group", kGroup},
            {"names",
             {{"kind", names.kind},
              {"listKind", names.kind + "List"},
              {"plural", names.plural},
              {"singular", names.plural.substr(0, names.plural.size() - 1)},
              {"shortNames", Json::array({names.short_name})},
              {"categories", Json::array({"adamant"})}}},
            {"scope", "Namespaced"},
            {"versions", Json::array({std::move(version)})}}}};
}

/// The status: as it may be written by several, conditions are told from each other by their type.
Json StatusSchema(const job::Comments& comments) {
  Json schema = OpenApi(*v1::TrainingJobStatus::descriptor(), comments);
  Json& conditions = schema["properties"]["conditions"];
  conditions["x-kubernetes-list-type"] = "map";
  conditions["x-kubernetes-list-map-keys"] = Json::array({"type"});
  Json described = {{"description", comments.Of(*v1::TrainingJobStatus::descriptor())}};
  described.update(schema);
  return described;
}

}  // namespace

Json TrainingJobDefinition(const job::Comments& comments) {
  const google::protobuf::Descriptor& type = *v1::TrainingJob::descriptor();
  Json schema = OpenApi(type, comments);
  Json& properties = schema["properties"];
  const Json name = properties["metadata"]["properties"]["name"];
  const Json metadata = {{"type", "object"}, {"properties", {{"name", name}}}};
  properties = {{"spec", properties["spec"]}, {"status", StatusSchema(comments)}};
  schema["required"] = Json::array({"spec"});
  schema.erase("x-kubernetes-validations");  // that what is beside the spec cannot change
  Json described = {{"description", comments.Of(type)}};
  described.update(WithObjectFields(std::move(schema), metadata));
  return Definition({.kind = "TrainingJob", .plural = "trainingjobs", .short_name = "tj"},
                    {{"schema", {{"openAPIV3Schema", std::move(described)}}},
                     {"subresources",
                      {{"status", Json::object()},
                       {"scale",
                        {{"specReplicasPath", ".spec.distribution.workers"},
                         {"statusReplicasPath", ".status.roles.worker.pods"},
                         {"labelSelectorPath", ".status.roles.worker.selector"}}}}},
                     {"additionalPrinterColumns",
                      Json::array({Column("Phase", "string", ".status.phase"),
                                   Column("Epoch", "integer", ".status.epoch"),
                                   Column("Accuracy", "number", ".status.accuracy"),
                                   Column("Examples/s", "integer", ".status.examplesPerSecond"),
                                   Column("Workers", "integer", ".status.roles.worker.ready"),
                                   Column("Restarts", "integer", ".status.restarts"),
                                   AgeColumn()})}});
}

Json ShardMapDefinition(const job::Comments& comments) {
  const google::protobuf::Descriptor& type = *v1::ShardMap::descriptor();
  Json described = {{"description", comments.Of(type)}};
  described.update(WithObjectFields(OpenApi(type, comments), {{"type", "object"}}));
  return Definition({.kind = "ShardMap", .plural = "shardmaps", .short_name = "sm"},
                    {{"schema", {{"openAPIV3Schema", std::move(described)}}},
                     {"additionalPrinterColumns",
                      Json::array({Column("Job", "string", ".job"),
                                   Column("First", "integer", ".first"),
                                   Column("Buckets", "integer", ".count"),
                                   Column("Term", "integer", ".term"),
                                   AgeColumn()})}});
}

}  // namespace adamant::kube
