#include "operator/kube_client/api/resource.h"

#include <gtest/gtest.h>

#include <string>

namespace adamant::kube {
namespace {

constexpr Resource kJobs{"adamant.dev", "v1", "trainingjobs", "TrainingJob"};

TEST(ResourceTest, PathsFollowGroupNamespaceAndName) {
  EXPECT_EQ(*ObjectPath(kPods, {"default", "web"}), "/api/v1/namespaces/default/pods/web");
  EXPECT_EQ(*ObjectPath(kJobs, {"ml", "mnist"}, "status"),
            "/apis/adamant.dev/v1/namespaces/ml/trainingjobs/mnist/status");
  EXPECT_EQ(*ObjectPath(kNodes, {"", "node-1"}), "/api/v1/nodes/node-1");
  EXPECT_EQ(*CollectionPath(kJobs, ""), "/apis/adamant.dev/v1/trainingjobs");
  EXPECT_EQ(*CollectionPath(kJobs, "ml"), "/apis/adamant.dev/v1/namespaces/ml/trainingjobs");
}

TEST(ResourceTest, NamesAreEncodedIntoPaths) {
  EXPECT_EQ(*ObjectPath(kPods, {"default", "a?b=c&d#e"}),
            "/api/v1/namespaces/default/pods/a%3Fb%3Dc%26d%23e");
  EXPECT_EQ(PercentEncode("app in (a,b),x=y z~\xc3\xa9"),
            "app%20in%20%28a%2Cb%29%2Cx%3Dy%20z~%C3%A9");
}

TEST(ResourceTest, RefusesWhatCannotBeAName) {
  for (const std::string& name : {std::string(),
                                  std::string("."),
                                  std::string(".."),
                                  std::string("a/b"),
                                  std::string("a%2fb"),
                                  std::string("a b"),
                                  std::string("a\nb"),
                                  std::string("a\0b", 3),
                                  std::string(254, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ObjectPath(kPods, {"default", name}).status())) << name;
    EXPECT_TRUE(name.empty() || absl::IsInvalidArgument(ObjectPath(kPods, {name, "web"}).status()))
        << name;
  }
  EXPECT_TRUE(ObjectPath(kPods, {"default", std::string(253, 'a')}).ok());
}

TEST(ResourceTest, NamespacesAreWhereTheyBelong) {
  EXPECT_TRUE(absl::IsInvalidArgument(ObjectPath(kPods, {"", "web"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ObjectPath(kNodes, {"default", "node-1"}).status()));
}

TEST(ResourceTest, KeysAreReadAsTheyAreWritten) {
  for (const ObjectKey& key : {ObjectKey{"default", "web"}, ObjectKey{"", "node-1"}}) {
    EXPECT_EQ(*ParseObjectKey(ToString(key)), key);
  }
  EXPECT_FALSE(ParseObjectKey("/web").ok());
  EXPECT_FALSE(ParseObjectKey("default/").ok());
  EXPECT_FALSE(ParseObjectKey("a/b/c").ok());
  EXPECT_FALSE(ParseObjectKey("").ok());
}

}  // namespace
}  // namespace adamant::kube
