#include "operator/kube/pods/node_view.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube_client/base/time.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::kube {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

Json Node(const std::string& ready) {
  return {{"metadata", {{"name", "node1"}, {"uid", "u"}}},
          {"status",
           {{"conditions",
             Json::array({{{"type", "MemoryPressure"}, {"status", "False"}},
                          {{"type", "Ready"},
                           {"status", ready},
                           {"lastTransitionTime", "2026-11-20T10:00:00Z"}}})}}}};
}

TEST(NodeViewTest, ANodeIsReadyWhenItSaysSoAndAtNoOtherTime) {
  const auto ready = ParseNode(Node("True"));
  EXPECT_EQ(ready->name, "node1");
  EXPECT_TRUE(ready->ready);
  EXPECT_FALSE(ready->out_of_service);
  EXPECT_EQ(ready->since, ParseTime("2026-11-20T10:00:00Z").value());
  EXPECT_FALSE(ParseNode(Node("False"))->ready);
  EXPECT_FALSE(ParseNode(Node("Unknown"))->ready);
}

bool Takes(const Json& node, const Json& tolerations = Json()) {
  return TakesPods(*ParseNode(node), tolerations);
}

TEST(NodeViewTest, ANodeTakesPodsUnlessItIsCordonedOrTainted) {
  Json node = Node("True");
  EXPECT_TRUE(Takes(node));
  node["spec"]["unschedulable"] = true;
  EXPECT_FALSE(Takes(node));
  node["spec"]["unschedulable"] = false;
  for (const auto& [effect, takes] : {std::pair("PreferNoSchedule", true),
                                      std::pair("NoSchedule", false),
                                      std::pair("NoExecute", false)}) {
    node["spec"]["taints"] = Json::array({{{"key", "example.org/gpu"}, {"effect", effect}}});
    EXPECT_EQ(Takes(node), takes) << effect;
  }
}

TEST(NodeViewTest, APodThatToleratesANodesTaintsMayUseIt) {
  Json node = Node("True");
  node["spec"]["taints"] =
      Json::array({{{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}});
  struct Case {
    const char* toleration;
    bool takes;
  };
  for (const Case& c :
       {Case{R"({"key": "gpu", "operator": "Exists"})", true},
        Case{R"({"key": "gpu", "value": "yes"})", true},
        Case{R"({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"})",
             true},
        Case{R"({"operator": "Exists"})", true},
        Case{R"({"key": "gpu", "value": "no"})", false},
        Case{R"({"key": "gpu"})", false},
        Case{R"({"key": "disk", "operator": "Exists"})", false},
        Case{R"({"value": "yes"})", false},
        Case{R"({"key": "gpu", "operator": "Exists", "effect": "NoExecute"})", false},
        Case{R"({"key": "gpu", "operator": "Exists", "tolerationSeconds": 300})", false},
        Case{R"("gpu")", false}}) {
    EXPECT_EQ(Takes(node, Json::array({Json::parse(c.toleration)})), c.takes) << c.toleration;
  }
  const Json gpu = {{"key", "gpu"}, {"operator", "Exists"}};
  node["spec"]["unschedulable"] = true;
  EXPECT_FALSE(Takes(node, Json::array({gpu}))) << "a cordon is a taint of its own";
  const Json cordon = {{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}};
  EXPECT_TRUE(Takes(node, Json::array({gpu, cordon})));
}

TEST(NodeViewTest, ANodesHostNameIsThatOfItsLabelElseItsName) {
  Json node = Node("True");
  EXPECT_EQ(ParseNode(node)->host_name, "node1");
  node["metadata"]["labels"]["kubernetes.io/hostname"] = "host-1";
  EXPECT_EQ(ParseNode(node)->host_name, "host-1");
}

TEST(NodeViewTest, ANodesZoneIsThatOfItsLabel) {
  Json node = Node("True");
  EXPECT_EQ(ParseNode(node)->zone, "");
  node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "east";
  EXPECT_EQ(ParseNode(node)->zone, "east");
}

TEST(NodeViewTest, OneThatSaysNothingUnderstandableIsNotReady) {
  for (const char* status : {R"({})",
                             R"({"conditions": null})",
                             R"({"conditions": {"type": "Ready"}})",
                             R"({"conditions": [3, null, {"type": "Ready"}]})",
                             R"({"conditions": [{"type": "Ready", "lastTransitionTime": "?"}]})"}) {
    Json node = Node("True");
    node["status"] = Json::parse(status);
    const auto view = ParseNode(node);
    EXPECT_FALSE(view->ready) << status;
    EXPECT_FALSE(view->since) << status;
  }
}

TEST(NodeViewTest, OnlyItsOwnTaintMarksANodeAsOutOfService) {
  Json node = Node("Unknown");
  node["spec"]["taints"] = {{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoExecute"}}};
  EXPECT_FALSE(ParseNode(node)->out_of_service);
  node["spec"]["taints"].push_back({{"key", "node.kubernetes.io/out-of-service"},
                                    {"value", "nodeshutdown"},
                                    {"effect", "NoExecute"}});
  EXPECT_TRUE(ParseNode(node)->out_of_service);
}

class NodeAbsencesTest : public testing::Test {
 protected:
  void See(bool ready, seconds ago = seconds(0)) {
    See({{"node1",
          std::make_shared<NodeView>(
              NodeView{.name = "node1", .ready = ready, .since = clock_.WallNow() - ago})}});
  }
  void See(const NodeViews& nodes) { absences_.Update(nodes, clock_); }

  [[nodiscard]] std::optional<Clock::Duration> Away() const {
    return absences_.Of("node1", clock_.Now());
  }

  FakeClock clock_;
  NodeAbsences absences_;
};

TEST_F(NodeAbsencesTest, ANodeIsAwayFromWhenItIsNoticedUntilItIsReady) {
  See(true);
  EXPECT_EQ(Away(), std::nullopt);
  See(false);
  EXPECT_EQ(Away(), seconds(0));
  clock_.Advance(seconds(7));
  See(false);  // its status was written again
  EXPECT_EQ(Away(), seconds(7));
  See(true);
  EXPECT_EQ(Away(), std::nullopt);
  clock_.Advance(seconds(7));
  See(false);
  EXPECT_EQ(Away(), seconds(0));
}

TEST_F(NodeAbsencesTest, KubernetesWordCountsWhereItIsOlder) {
  See(false, seconds(30));
  EXPECT_EQ(Away(), seconds(30));
}

TEST_F(NodeAbsencesTest, AClockThatIsAheadOfOursDoesNotMakeANodeReady) {
  See(false, seconds(-3600));
  clock_.Advance(seconds(5));
  EXPECT_EQ(Away(), seconds(5));
}

TEST_F(NodeAbsencesTest, ANodeThatIsNotThereIsAway) {
  See(NodeViews{{"node1", nullptr}});
  clock_.Advance(seconds(5));
  EXPECT_EQ(Away(), seconds(5));
}

TEST_F(NodeAbsencesTest, NodesThatMatterNoMoreAreForgotten) {
  See(false);
  clock_.Advance(seconds(5));
  See(NodeViews{});
  EXPECT_EQ(Away(), std::nullopt);
  See(false);
  EXPECT_EQ(Away(), seconds(0));
}

}  // namespace
}  // namespace adamant::kube
