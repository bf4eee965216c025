#include "operator/kube/pods/objects/pod_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PodImageTest, AnnotationsSayWhatIsRunAndByWhichSecretsItIsFetched) {
  const PodImage image{
      .name = "adamant:1", .pull_policy = "Never", .pull_secrets = {"registry", "mirror"}};
  const PodImage read = ImageIn({{"metadata", {{"annotations", ImageAnnotations(image)}}}});
  EXPECT_EQ(read.name, "adamant:1");
  EXPECT_EQ(read.pull_policy, "");
  EXPECT_THAT(read.pull_secrets, ElementsAre("registry", "mirror"));
}

TEST(PodImageTest, AnEarlierOperatorsAnnotationNamesNoSecrets) {
  const Json object = {{"metadata", {{"annotations", {{"adamant.dev/image", "adamant:1"}}}}}};
  EXPECT_EQ(ImageIn(object).name, "adamant:1");
  EXPECT_THAT(ImageIn(object).pull_secrets, IsEmpty());
  EXPECT_EQ(ImageIn(Json::object()).name, "");
}

TEST(PodImageTest, SecretsThatAreNotThereAnyMoreAreNotLeftInAnnotations) {
  Json annotations = ImageAnnotations({.name = "adamant:1", .pull_secrets = {"registry"}});
  annotations.merge_patch(ImageAnnotations({.name = "adamant:2"}));
  EXPECT_THAT(ImageIn({{"metadata", {{"annotations", annotations}}}}).pull_secrets, IsEmpty());
}

TEST(PodImageTest, ThePolicyIsOfEachContainerThatRunsTheImageAndSaysNothingElse) {
  Json pod = Json::parse(R"({"spec": {"containers": [
      {"image": "adamant:1"}, {"image": "other"}, {"image": "adamant:1", "imagePullPolicy": "Never"}]}})");
  AddPullPolicy({.name = "adamant:1", .pull_policy = "Always"}, pod);
  const Json& containers = pod["spec"]["containers"];
  EXPECT_EQ(containers[0]["imagePullPolicy"], "Always");
  EXPECT_FALSE(containers[1].contains("imagePullPolicy"));
  EXPECT_EQ(containers[2]["imagePullPolicy"], "Never");
}

TEST(PodImageTest, ATemplateThatLeavesNoContainersIsNoReasonToEnd) {
  Json pod = Json::parse(R"({"spec": {"containers": 3}})");
  AddPullPolicy({.name = "adamant:1", .pull_policy = "Always"}, pod);
  EXPECT_EQ(pod, Json::parse(R"({"spec": {"containers": 3}})"));
}

}  // namespace
}  // namespace adamant::kube
