// The verbs, at a real API server.
#include <nlohmann/json.hpp>
#include <set>

#include "operator/kube_client/api/event_recorder.h"
#include "tests/integration/operator/kube_client/cluster_rig.h"

namespace adamant::kube {
namespace {

class VerbsTest : public ClusterTest {
 protected:
  Json Pod(const std::string& name) {
    return {{"metadata", {{"namespace", ns_}, {"name", name}}},
            {"spec",
             {{"automountServiceAccountToken", false},
              {"containers", {{{"name", "main"}, {"image", "none"}}}}}}};
  }

  void CreateServiceAccount() {
    constexpr Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};
    ASSERT_TRUE(
        NewClient()
            .Create(kServiceAccounts, {{"metadata", {{"namespace", ns_}, {"name", "default"}}}})
            .ok());
  }
};

TEST_F(VerbsTest, AnObjectLivesItsLife) {
  const Client client = NewClient();
  EXPECT_EQ(*client.GetRaw("/readyz"), "ok");
  const auto created = client.Create(kConfigMaps, Map("a", "1"));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(absl::IsAlreadyExists(client.Create(kConfigMaps, Map("a")).status()));
  EXPECT_TRUE(absl::IsNotFound(client.Get(kConfigMaps, Key("b")).status()));

  Json newer = *created;
  newer["data"]["value"] = "2";
  ASSERT_TRUE(client.Update(kConfigMaps, newer).ok());
  EXPECT_TRUE(absl::IsAborted(client.Update(kConfigMaps, newer).status()));
  ASSERT_TRUE(
      client.Patch(kConfigMaps, Key("a"), PatchType::kMerge, {{"data", {{"more", "3"}}}}).ok());
  ASSERT_TRUE(client
                  .Patch(kConfigMaps,
                         Key("a"),
                         PatchType::kJson,
                         {{{"op", "replace"}, {"path", "/data/value"}, {"value", "4"}}})
                  .ok());
  const Json read = *client.Get(kConfigMaps, Key("a"));
  EXPECT_EQ(read["data"], (Json{{"value", "4"}, {"more", "3"}}));

  EXPECT_TRUE(absl::IsAborted(client.Delete(kConfigMaps, Key("a"), {.uid = "another"})));
  EXPECT_TRUE(absl::IsAborted(
      client.Delete(kConfigMaps, Key("a"), {.resource_version = ResourceVersionOf(*created)})));
  EXPECT_TRUE(client.Delete(kConfigMaps, Key("a"), {.uid = UidOf(read)}).ok());
  EXPECT_TRUE(absl::IsNotFound(client.Delete(kConfigMaps, Key("a"))));
}

TEST_F(VerbsTest, AppliersOwnTheirFields) {
  const Client client = NewClient();
  Json mine = Map("a", "1");
  mine["data"]["extra"] = "x";
  ASSERT_TRUE(client.Apply(kConfigMaps, mine, {.field_manager = "one"}).ok());
  const absl::Status conflict =
      client.Apply(kConfigMaps, Map("a", "2"), {.field_manager = "two"}).status();
  EXPECT_TRUE(absl::IsAborted(conflict)) << conflict;
  EXPECT_NE(conflict.message().find(".data.value"), std::string::npos) << conflict;
  ASSERT_TRUE(
      client.Apply(kConfigMaps, Map("a", "2"), {.field_manager = "two", .force = true}).ok());
  // Who names a field no longer gives it up.
  Json less = Map("a");
  less.erase("data");
  ASSERT_TRUE(client.Apply(kConfigMaps, less, {.field_manager = "one"}).ok());
  EXPECT_EQ((*client.Get(kConfigMaps, Key("a")))["data"], (Json{{"value", "2"}}));
}

TEST_F(VerbsTest, StatusIsASubresource) {
  CreateServiceAccount();
  const Client client = NewClient();
  const auto created = client.Create(kPods, Pod("web"));
  ASSERT_TRUE(created.ok()) << created.status();
  Json pod = *created;
  pod["status"]["phase"] = "Running";
  ASSERT_TRUE(client.Update(kPods, pod).ok());
  EXPECT_EQ(StringAt(*client.Get(kPods, Key("web")), {"status", "phase"}), "Pending");
  ASSERT_TRUE(client.Update(kPods, pod, "status").ok());
  EXPECT_EQ(StringAt(*client.Get(kPods, Key("web")), {"status", "phase"}), "Running");
  const Json containers = {{"spec", {{"containers", {{{"name", "main"}, {"image", "other"}}}}}}};
  ASSERT_TRUE(client.Patch(kPods, Key("web"), PatchType::kStrategicMerge, containers).ok());
  const Json read = *client.Get(kPods, Key("web"));
  EXPECT_EQ(read["spec"]["containers"].size(), 1u);
  EXPECT_EQ(read["spec"]["containers"][0]["image"], "other");

  Json eviction = {{"apiVersion", "policy/v1"},
                   {"kind", "Eviction"},
                   {"metadata", {{"namespace", ns_}, {"name", "web"}}}};
  EXPECT_TRUE(client.Create(kPods, eviction, {.subresource = "eviction"}).ok());
  EXPECT_TRUE(client.Delete(kPods, Key("web"), {.grace_period = std::chrono::seconds(0)}).ok() ||
              absl::IsNotFound(client.Get(kPods, Key("web")).status()));
}

TEST_F(VerbsTest, ARefusalNamesTheField) {
  CreateServiceAccount();
  Json pod = Pod("web");
  pod["spec"]["containers"][0]["name"] = "Not A Name";
  const absl::Status status = NewClient().Create(kPods, pod).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("spec.containers[0].name"), std::string::npos) << status;
}

TEST_F(VerbsTest, AListComesInPagesAndOfWhatIsSelected) {
  const Client client = NewClient();
  constexpr int kObjects = 620;
  for (int i = 0; i < kObjects; ++i) {
    Json map = Map("m" + std::to_string(i));
    map["metadata"]["labels"]["part"] = i % 2 == 0 ? "even" : "odd";
    ASSERT_TRUE(client.Create(kConfigMaps, map).ok());
  }
  std::set<std::string> names;
  const auto all = client.List(kConfigMaps, {.ns = ns_});
  ASSERT_TRUE(all.ok()) << all.status();
  for (const Json& object : *all) {
    names.insert(KeyOf(object).name);
  }
  EXPECT_EQ(names.size(), std::size_t{kObjects});
  EXPECT_EQ(client.List(kConfigMaps, {.ns = ns_, .label_selector = "part in (odd)"})->size(),
            std::size_t{kObjects} / 2);
  EXPECT_EQ(client.List(kConfigMaps, {.ns = ns_, .field_selector = "metadata.name=m7"})->size(),
            1u);
  ASSERT_TRUE(client.DeleteCollection(kConfigMaps, {.ns = ns_, .label_selector = "part=odd"}).ok());
  EXPECT_EQ(client.List(kConfigMaps, {.ns = ns_})->size(), std::size_t{kObjects} / 2);
}

TEST_F(VerbsTest, EventsAreWrittenAndCounted) {
  const Client client = NewClient();
  const Json map = *client.Create(kConfigMaps, Map("a"));
  EventRecorder recorder(client, {.component = "test", .instance = "one"}, clock_, sleeper_);
  const Event event{.object = {"v1", "ConfigMap", Key("a"), UidOf(map)},
                    .warning = true,
                    .reason = "Tested",
                    .message = "again"};
  recorder.Record(event);
  recorder.Step();
  recorder.Record(event);
  recorder.Step();
  EXPECT_EQ(recorder.dropped(), 0u);
  const auto events = client.List(kEvents, {.ns = ns_, .field_selector = "involvedObject.name=a"});
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(IntAt((*events)[0], {"count"}), 2);
}

}  // namespace
}  // namespace adamant::kube
