#include "operator/kube/pods/objects/strategic_merge.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace adamant::kube {
namespace {

using Json = nlohmann::json;

Json Merged(const std::string& target, const std::string& patch) {
  Json merged = Json::parse(target);
  StrategicMerge(merged, Json::parse(patch));
  return merged;
}

TEST(StrategicMergeTest, ObjectsAreMergedFieldByField) {
  EXPECT_EQ(Merged(R"({"a": {"b": 1, "c": 2}, "d": 3})", R"({"a": {"c": 4, "e": 5}})"),
            Json::parse(R"({"a": {"b": 1, "c": 4, "e": 5}, "d": 3})"));
}

TEST(StrategicMergeTest, AnEmptyPatchChangesNothing) {
  const std::string pod = R"({"containers": [{"name": "a"}], "tolerations": [1]})";
  EXPECT_EQ(Merged(pod, "{}"), Json::parse(pod));
}

TEST(StrategicMergeTest, NullDeletesAFieldAtAnyDepth) {
  EXPECT_EQ(Merged(R"({"a": {"b": 1, "c": 2}, "d": 3})", R"({"a": {"b": null}, "d": null})"),
            Json::parse(R"({"a": {"c": 2}})"));
  EXPECT_EQ(Merged(R"({"a": 1})", R"({"b": null, "c": {"d": null}})"),
            Json::parse(R"({"a": 1, "c": {}})"));
}

struct KeyedList {
  const char* list;
  const char* key;
};

class KeyedLists : public testing::TestWithParam<KeyedList> {};

TEST_P(KeyedLists, AreMergedByTheirKeyInPlace) {
  const auto [list, key] = GetParam();
  const Json target = {{list, {{{key, "a"}, {"x", 1}}, {{key, "b"}, {"x", 2}}}}};
  const Json patch = {{list, {{{key, "b"}, {"y", 3}}, {{key, "c"}, {"x", 4}}}}};
  Json merged = target;
  StrategicMerge(merged, patch);
  const Json expected = {
      {list, {{{key, "a"}, {"x", 1}}, {{key, "b"}, {"x", 2}, {"y", 3}}, {{key, "c"}, {"x", 4}}}}};
  EXPECT_EQ(merged, expected);
}

INSTANTIATE_TEST_SUITE_P(OfPods,
                         KeyedLists,
                         testing::Values(KeyedList{"containers", "name"},
                                         KeyedList{"initContainers", "name"},
                                         KeyedList{"ephemeralContainers", "name"},
                                         KeyedList{"volumes", "name"},
                                         KeyedList{"env", "name"},
                                         KeyedList{"volumeMounts", "mountPath"},
                                         KeyedList{"volumeDevices", "devicePath"},
                                         KeyedList{"ports", "containerPort"},
                                         KeyedList{"imagePullSecrets", "name"},
                                         KeyedList{"hostAliases", "ip"},
                                         KeyedList{"topologySpreadConstraints", "topologyKey"},
                                         KeyedList{"resourceClaims", "name"},
                                         KeyedList{"schedulingGates", "name"}),
                         [](const auto& list) { return std::string(list.param.list); });

TEST(StrategicMergeTest, ListsWithinElementsOfListsAreMergedToo) {
  EXPECT_EQ(Merged(R"({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}],
                                       "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]})",
                   R"({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}],
                                       "volumeMounts": [{"name": "other", "mountPath": "/data"},
                                                        {"name": "data", "mountPath": "/more"}]}]})"),
            Json::parse(R"({"containers": [{"name": "a",
                "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
                "volumeMounts": [{"name": "other", "mountPath": "/data"},
                                 {"name": "data", "mountPath": "/more"}]}]})"));
}

TEST(StrategicMergeTest, ListsWithoutAKeyAreReplaced) {
  EXPECT_EQ(Merged(R"({"args": ["a", "b"], "tolerations": [{"key": "x"}]})",
                   R"({"args": ["c"], "tolerations": [{"key": "y"}]})"),
            Json::parse(R"({"args": ["c"], "tolerations": [{"key": "y"}]})"));
  EXPECT_EQ(Merged(R"({"args": ["a"]})", R"({"args": []})"), Json::parse(R"({"args": []})"));
}

TEST(StrategicMergeTest, AnElementCanBeDeletedByItsKey) {
  EXPECT_EQ(Merged(R"({"volumes": [{"name": "a"}, {"name": "b"}]})",
                   R"({"volumes": [{"name": "a", "$patch": "delete"}]})"),
            Json::parse(R"({"volumes": [{"name": "b"}]})"));
}

TEST(StrategicMergeTest, DeletingWhatIsNotThereChangesNothing) {
  EXPECT_EQ(Merged(R"({"volumes": [{"name": "b"}]})",
                   R"({"volumes": [{"name": "a", "$patch": "delete"}, {"$patch": "delete"}]})"),
            Json::parse(R"({"volumes": [{"name": "b"}]})"));
  EXPECT_EQ(Merged("{}", R"({"volumes": [{"name": "a", "$patch": "delete"}, {"name": "c"}]})"),
            Json::parse(R"({"volumes": [{"name": "c"}]})"));
}

TEST(StrategicMergeTest, AKeyedListThatTheTargetLacksIsTakenOver) {
  EXPECT_EQ(Merged("{}", R"({"env": [{"name": "X", "value": "1", "valueFrom": null}]})"),
            Json::parse(R"({"env": [{"name": "X", "value": "1"}]})"));
  EXPECT_EQ(Merged(R"({"env": null})", R"({"env": [{"name": "X"}]})"),
            Json::parse(R"({"env": [{"name": "X"}]})"));
}

TEST(StrategicMergeTest, ElementsOfTheSameKeyInAPatchAreMergedToo) {
  EXPECT_EQ(Merged("{}", R"({"env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]})"),
            Json::parse(R"({"env": [{"name": "X", "value": "2"}]})"));
}

TEST(StrategicMergeTest, ElementsWithoutTheirKeyAreAdded) {
  EXPECT_EQ(Merged(R"({"env": [{"name": "X"}]})", R"({"env": [{"value": "1"}, 3]})"),
            Json::parse(R"({"env": [{"name": "X"}, {"value": "1"}, 3]})"));
}

// What a template holds is the user's: the API refuses what is no pod, not we.
TEST(StrategicMergeTest, OtherTypesReplaceWhatWasThere) {
  EXPECT_EQ(Merged(R"({"a": {"b": 1}})", R"({"a": 2})"), Json::parse(R"({"a": 2})"));
  EXPECT_EQ(Merged(R"({"a": 2})", R"({"a": {"b": 1}})"), Json::parse(R"({"a": {"b": 1}})"));
  EXPECT_EQ(Merged(R"({"env": [{"name": "X"}]})", R"({"env": {"name": "Y"}})"),
            Json::parse(R"({"env": {"name": "Y"}})"));
  EXPECT_EQ(Merged(R"({"env": "X"})", R"({"env": [{"name": "Y"}]})"),
            Json::parse(R"({"env": [{"name": "Y"}]})"));
  EXPECT_EQ(Merged(R"({"a": 1})", "[1]"), Json::parse("[1]"));
  EXPECT_EQ(Merged("3", R"({"a": 1})"), Json::parse(R"({"a": 1})"));
}

TEST(StrategicMergeTest, ADirectiveOfAWrongTypeIsNone) {
  EXPECT_EQ(Merged(R"({"env": [{"name": "X"}]})", R"({"env": [{"name": "X", "$patch": 3}]})"),
            Json::parse(R"({"env": [{"name": "X", "$patch": 3}]})"));
}

}  // namespace
}  // namespace adamant::kube
