// The operator reads objects as `adamant validate` reads manifests: over the corpus of
// tests/manifests, as JSON.

#include "operator/kube/schema/job_object.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/schema/message_json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kManifests =
    std::filesystem::path(ADAMANT_SOURCE_DIR) / "tests" / "manifests";

std::vector<std::filesystem::path> YamlFilesIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A job that came from a manifest, as the API server would hand it out.
Json ObjectOf(const v1::TrainingJob& job) {
  Json object = MessageJson(job);
  object["metadata"]["uid"] = "0a1b2c3d-0000-1111-2222-333344445555";
  object["metadata"]["resourceVersion"] = "12";
  object["metadata"]["managedFields"] = Json::array({{{"manager", "kubectl"}}});
  object["status"] = {{"phase", "Running"}};
  return object;
}

using PathsAndMessages = std::set<std::pair<std::string, std::string>>;

PathsAndMessages Told(const std::vector<job::Diagnostic>& problems) {
  PathsAndMessages told;
  for (const job::Diagnostic& problem : problems) {
    told.emplace(problem.field_path, problem.message);
  }
  return told;
}

class GoodManifest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoodManifest, ReadsTheSameAsAnObject) {
  const job::ParseResult manifest = job::LoadJob(GetParam());
  ASSERT_NE(manifest.job, nullptr);
  const job::ParseResult object = ReadJob(ObjectOf(*manifest.job));
  ASSERT_NE(object.job, nullptr) << job::Format(object.problems.front());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*manifest.job, *object.job))
      << job::ToYaml(*object.job);
}

INSTANTIATE_TEST_SUITE_P(Corpus,
                         GoodManifest,
                         testing::ValuesIn(YamlFilesIn(kManifests / "good")),
                         [](const auto& manifest) { return manifest.param.stem().string(); });

Json Minimal() {
  return Json::parse(R"({"apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob",
      "metadata": {"name": "mnist", "annotations": {"Example.org/a": "{}"}, "finalizers": ["x/y"]},
      "spec": {"model": {"reference": "adam-mnist"},
               "data": {"train": {"digits": {"seed": 1, "examples": 1000}},
                        "validation": {"digits": {"seed": 2, "examples": 100}}}}})");
}

TEST(JobObjectTest, ProblemsHaveThePathsAndMessagesOfManifests) {
  Json object = Minimal();
  object["spec"]["optimiser"] = {{"kind", "Adagrad"}, {"location", "Worker"}, {"momentum", 0.5}};
  object["spec"]["distribution"] = {{"workers", 0}, {"parameterServers", {{"copies", 4}}}};
  object["spec"]["runPolicy"] = {{"activeDeadline", 5}, {"epoch", 2}};
  const job::ParseResult as_object = ReadJob(object);
  const job::ParseResult as_manifest = job::ParseJob(object.dump(1), "job.yaml");
  EXPECT_EQ(as_object.job, nullptr);
  EXPECT_GE(as_object.problems.size(), 6U);
  EXPECT_NE(Told(as_object.problems), PathsAndMessages());
  // The manifest has metadata that no user writes; the object's is Kubernetes' own.
  PathsAndMessages manifest = Told(as_manifest.problems);
  std::erase_if(manifest, [](const auto& told) { return told.first == "metadata.finalizers"; });
  EXPECT_EQ(Told(as_object.problems), manifest);
}

TEST(JobObjectTest, DataIsNotLookedFor) {
  Json object = Minimal();
  object["spec"]["data"]["train"] = {{"idx", {{"images", "/data/i"}, {"labels", "/data/l"}}}};
  EXPECT_NE(ReadJob(object).job, nullptr);
}

TEST(JobObjectTest, PathsThatStartAtTheManifestsFolderAreRefused) {
  Json object = Minimal();
  object["spec"]["data"]["train"] = {{"idx", {{"images", "i"}, {"labels", "/l"}}}};
  const job::ParseResult result = ReadJob(object);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_EQ(result.problems[0].field_path, "spec.data.train.idx.images");
}

TEST(JobObjectTest, PodSpecsKeepWhatTheyHold) {
  Json object = Minimal();
  const Json spec = {{"containers", Json::array({{{"name", "adamant"}, {"tty", true}}})},
                     {"activeDeadlineSeconds", 30},
                     {"affinity", nullptr}};
  object["spec"]["pods"]["worker"]["spec"] = spec;
  const job::ParseResult result = ReadJob(object);
  ASSERT_NE(result.job, nullptr) << job::Format(result.problems.front());
  EXPECT_EQ(MessageJson(*result.job)["spec"]["pods"]["worker"]["spec"], spec);
}

TEST(JobObjectTest, WhateverTheObjectIsThereIsAJobOrAProblem) {
  Json deep = Json::object();
  for (int i = 0; i < 200; ++i) {
    deep = {{"a", deep}};
  }
  Json deep_pod = Minimal();
  deep_pod["spec"]["pods"]["worker"]["spec"] = deep;
  Json odd_metadata = Minimal();
  odd_metadata["metadata"] = 3;
  Json null_spec = Minimal();
  null_spec["spec"] = nullptr;
  for (const Json& object :
       {Json(), Json::array(), Json("job"), Json(1), deep, deep_pod, odd_metadata, null_spec}) {
    const job::ParseResult result = ReadJob(object);
    EXPECT_EQ(result.job, nullptr);
    EXPECT_FALSE(result.problems.empty());
  }
}

}  // namespace
}  // namespace adamant::kube
