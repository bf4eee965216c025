// Where Kubernetes says that nodes are, and where copies go: a pod cannot read its node's labels.

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/core/state/messages.h"
#include "operator/kube_client/base/json.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {
namespace {

using controller::Role;

/// By slot: the zone of the server's node.
using Layout = std::array<const char*, 4>;

/// Four servers, each on a node of its own.
class ZonesTest : public JobReconcilerRig, public testing::WithParamInterface<Layout> {
 protected:
  ZonesTest() {
    Lead({{"distribution",
           {{"workers", 1}, {"parameterServers", {{"count", 4}, {"copies", 2}, {"buckets", 8}}}}}});
    Work();
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
      const std::string node = NodeOf(slot);
      SetNode(node, "True");
      const Json labels = {{"topology.kubernetes.io/zone", GetParam()[slot]}};
      EXPECT_TRUE(
          client_.Patch(kNodes, {"", node}, PatchType::kMerge, {{"metadata", {{"labels", labels}}}})
              .ok());
      RunOn(node, "mnist-parameter-server-" + std::to_string(slot) + "-1");
    }
    Work();
  }

  static std::string NodeOf(std::uint32_t slot) { return "node" + std::to_string(slot); }

  /// As processes do that their pods give the name of their node.
  void Join(controller::ConnectionId connection, controller::SlotId id) {
    controller::Join join;
    join.id = id;
    join.uid = "process " + std::to_string(connection);
    join.address = "address:1";
    join.generation = 1;
    join.node = id.role == Role::kParameterServer ? NodeOf(id.slot) : "";
    control_.Tell(connection, join);
    control_.Tell(connection, controller::Heartbeat{});
    if (id.role == Role::kParameterServer) {
      control_.Tell(connection, controller::StoredBuckets{});
    }
    Work();
  }

  [[nodiscard]] controller::Membership LastMembership() const {
    const auto views = control_.Sent<controller::Membership>();
    return views.empty() ? controller::Membership() : views.back().second;
  }
};

// Who knew nothing of zones would choose the same servers each time, and be wrong in one of these.
INSTANTIATE_TEST_SUITE_P(Layouts,
                         ZonesTest,
                         testing::Values(Layout{"east", "east", "west", "west"},
                                         Layout{"east", "west", "east", "west"},
                                         Layout{"east", "west", "west", "east"}));

TEST_P(ZonesTest, CopiesOfABucketGoToServersInOtherZones) {
  Join(1, {Role::kDataServer, 0});
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    Join(slot + 2, {Role::kParameterServer, slot});
  }
  const auto assigned = LastMembership().buckets;
  ASSERT_EQ(assigned.size(), 8u);
  for (std::uint32_t bucket = 0; bucket < 8; ++bucket) {
    control_.Tell(assigned[bucket].primary.slot + 2,
                  controller::BucketsReady{
                      {{.bucket = bucket, .configuration_version = assigned[bucket].version}}});
  }
  Work();
  int copies = 0;
  for (const controller::Configuration& bucket : LastMembership().buckets) {
    if (bucket.learner) {
      ++copies;
      EXPECT_STRNE(GetParam()[bucket.learner->slot], GetParam()[bucket.primary.slot]);
    }
  }
  EXPECT_GT(copies, 0);
}

}  // namespace
}  // namespace adamant::kube
