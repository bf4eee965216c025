#include "operator/kube/volumes/volume_host.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace adamant::kube {
namespace {

std::string HostOf(const std::string& terms) {
  nlohmann::json volume = nlohmann::json::object();
  volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = nlohmann::json::parse(terms);
  return HostOfVolume(volume);
}

TEST(VolumeHostTest, AVolumeOnOneNodeNamesItsHost) {
  EXPECT_EQ(HostOf(R"([{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["east"]},
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node1"]}]}])"),
            "node1");
}

TEST(VolumeHostTest, AVolumeThatSeveralNodesHaveOrThatDoesNotSayHasNone) {
  for (const char* terms :
       {R"([])",
        R"("node1")",
        R"([{"matchExpressions": "node1"}])",
        R"([{"matchExpressions": [3, {"key": "kubernetes.io/hostname", "operator": "In"}]}])",
        R"([{"matchExpressions": [
             {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["east"]}]}])",
        R"([{"matchExpressions": [
             {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a", "b"]}]}])",
        R"([{"matchExpressions": [
             {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["a"]}]}])",
        R"([{"matchExpressions": [
             {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]},
            {"matchExpressions": [
             {"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}])"}) {
    EXPECT_EQ(HostOf(terms), "") << terms;
  }
  EXPECT_EQ(HostOfVolume(nlohmann::json::object()), "");
}

}  // namespace
}  // namespace adamant::kube
