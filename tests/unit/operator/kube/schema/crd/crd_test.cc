// helm/adamant/files/crds says what the protos say. ADAMANT_WRITE_EXPECTED=1 writes it anew.

#include "operator/kube/schema/crd/crd.h"

#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "operator/kube/schema/crd/yaml_file.h"
#include "services/common/job/yaml/comments.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::kube {
namespace {

using Json = nlohmann::ordered_json;

std::string Content(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

job::Comments SchemaComments() {
  google::protobuf::FileDescriptorSet files;
  EXPECT_TRUE(files.ParseFromString(Content(ADAMANT_SCHEMA_DESCRIPTORS)));
  return job::Comments(files);
}

constexpr char kHeader[] =
    "# Made from proto/adamant/v1/{job,resources}.proto. To make it anew after a change there:\n"
    "# ADAMANT_WRITE_EXPECTED=1 build/release/tests/kube_schema_test && tools/write_deploy.py\n";

void ExpectFile(const std::string& name, const Json& definition) {
  const std::filesystem::path file =
      std::filesystem::path(ADAMANT_SOURCE_DIR) / "helm/adamant/files/crds" / name;
  const std::string text = kHeader + ToYamlFile(definition);
  if (std::getenv("ADAMANT_WRITE_EXPECTED") != nullptr) {
    std::ofstream(file, std::ios::binary) << text;
  }
  EXPECT_EQ(Content(file), text)
      << "the protos have changed: run this test with ADAMANT_WRITE_EXPECTED=1";
}

/// Calls `visit` for each schema of a property, item or value within `schema`, with its path.
void ForEachSchema(const Json& schema,
                   const std::string& path,
                   const std::function<void(const Json&, const std::string&)>& visit) {
  visit(schema, path);
  if (schema.contains("properties")) {
    for (const auto& [name, property] : schema["properties"].items()) {
      ForEachSchema(property, job::FieldPath(path, name), visit);
    }
  }
  for (const char* inner : {"items", "additionalProperties"}) {
    if (schema.contains(inner)) {
      ForEachSchema(schema[inner], path + "[]", visit);
    }
  }
}

const Json& SchemaOf(const Json& definition) {
  return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

const Json& Property(const Json& schema, const std::string& path) {
  const Json* found = &schema;
  std::istringstream names(path);
  for (std::string name; std::getline(names, name, '.');) {
    found = name == "[]" ? &found->at("items") : &found->at("properties").at(name);
  }
  return *found;
}

TEST(CrdTest, TheFilesAreMadeFromTheSchema) {
  const job::Comments comments = SchemaComments();
  ExpectFile("trainingjobs.yaml", TrainingJobDefinition(comments));
  ExpectFile("shardmaps.yaml", ShardMapDefinition(comments));
}

TEST(CrdTest, EveryFieldHasATypeAndADescription) {
  const job::Comments comments = SchemaComments();
  for (const Json& definition : {TrainingJobDefinition(comments), ShardMapDefinition(comments)}) {
    ForEachSchema(SchemaOf(definition), "", [](const Json& schema, const std::string& path) {
      EXPECT_TRUE(schema.contains("type") || schema.contains("x-kubernetes-int-or-string")) << path;
      const bool described = path.empty() || path.ends_with("[]") || path.starts_with("metadata");
      EXPECT_TRUE(described || !schema.value("description", "").empty()) << path;
    });
  }
}

TEST(CrdTest, EveryListTextAndMapHasAnUpperSize) {
  const job::Comments comments = SchemaComments();
  for (const Json& definition : {TrainingJobDefinition(comments), ShardMapDefinition(comments)}) {
    ForEachSchema(SchemaOf(definition), "", [](const Json& schema, const std::string& path) {
      const std::string type = schema.value("type", "");
      if (type == "array") {
        EXPECT_GT(schema.value("maxItems", 0), 0) << path;
      } else if (schema.contains("additionalProperties")) {
        EXPECT_GT(schema.value("maxProperties", 0), 0) << path;
      } else if (type == "string" && path != "apiVersion" && path != "kind") {
        EXPECT_TRUE(schema.contains("maxLength") || schema.contains("enum")) << path;
      }
    });
  }
}

TEST(CrdTest, NumbersHaveTheRangesOfTheRules) {
  const Json definition = TrainingJobDefinition(SchemaComments());
  const Json& spec = Property(SchemaOf(definition), "spec");
  const Json& workers = Property(spec, "distribution.workers");
  EXPECT_EQ(workers["minimum"], 1);
  EXPECT_EQ(workers["maximum"], 1024);
  EXPECT_EQ(workers["default"], 2);
  const Json& momentum = Property(spec, "optimiser.momentum");
  EXPECT_EQ(momentum["maximum"], 1);
  EXPECT_EQ(momentum["exclusiveMaximum"], true);
  EXPECT_FALSE(momentum.contains("exclusiveMinimum"));
  EXPECT_EQ(Property(spec, "optimiser.rate")["exclusiveMinimum"], true);
}

TEST(CrdTest, OnlyDefaultsThatHoldWhateverElseIsGivenAreInTheSchema) {
  const Json definition = TrainingJobDefinition(SchemaComments());
  const Json& spec = Property(SchemaOf(definition), "spec");
  EXPECT_EQ(Property(spec, "optimiser")["default"]["schedule"], Json({{"kind", "Constant"}}));
  EXPECT_FALSE(Property(spec, "optimiser")["default"].contains("momentum"));
  EXPECT_EQ(Property(spec, "optimiser.kind")["default"], "Momentum");
  EXPECT_FALSE(Property(spec, "optimiser.momentum").contains("default"));
  EXPECT_FALSE(Property(spec, "data.seed").contains("default"));
  EXPECT_EQ(Property(spec, "data.cache")["default"], "256Mi");
  EXPECT_EQ(Property(spec, "output")["default"], Json({{"storage", {{"size", "10Gi"}}}}));
  EXPECT_FALSE(Property(spec, "output.storage").contains("default"));
}

TEST(CrdTest, PodSpecsAreKeptWhole) {
  const Json definition = TrainingJobDefinition(SchemaComments());
  const Json& pod = Property(SchemaOf(definition), "spec.pods.worker.spec");
  EXPECT_EQ(pod["x-kubernetes-preserve-unknown-fields"], true);
  int open = 0;
  ForEachSchema(SchemaOf(definition), "", [&](const Json& schema, const std::string&) {
    open += schema.contains("x-kubernetes-preserve-unknown-fields") ? 1 : 0;
  });
  EXPECT_EQ(open, 3);
}

}  // namespace
}  // namespace adamant::kube
