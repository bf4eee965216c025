#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/core/state/messages.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {

/// Each server on a node of its own, the others on a third; the servers have nothing yet.
class LostNodeRig : public JobReconcilerRig {
 protected:
  static inline const Json kSpec = Json::parse(R"({
    "distribution": {"workers": 1, "parameterServers": {"count": 2, "copies": 1, "buckets": 2}},
    "detection": {"nodeUnreachable": "20s", "forceDelete": "30s"}})");
  static constexpr char kLost[] = "mnist-parameter-server-0-1";
  static constexpr char kReplacement[] = "mnist-parameter-server-0-2";

  static inline const std::vector<std::string> kFirstPods = {"mnist-data-server-0-1",
                                                             "mnist-parameter-server-0-1",
                                                             "mnist-parameter-server-1-1",
                                                             "mnist-worker-0-1"};

  LostNodeRig() {
    for (const char* node : {"node1", "node2", "node3"}) {
      SetNode(node, "True");
    }
    Lead(kSpec);
    Work();
    RunOn("node1", "mnist-parameter-server-0-1");
    RunOn("node2", "mnist-parameter-server-1-1");
    RunOn("node3", "mnist-data-server-0-1");
    RunOn("node3", "mnist-worker-0-1");
    Work();
  }

  [[nodiscard]] std::vector<std::string> ServersClaims() const {
    std::vector<std::string> names = Names(kPersistentVolumeClaims);
    std::erase(names, "mnist-output");
    return names;
  }

  void Join(controller::ConnectionId connection, controller::SlotId id) {
    controller::Join join;
    join.id = id;
    join.uid = "process " + std::to_string(connection);
    join.address = "address:1";
    join.generation = NewestGeneration(id);
    control_.Tell(connection, join);
    control_.Tell(connection, controller::Heartbeat{});
    if (id.role == controller::Role::kParameterServer) {
      control_.Tell(connection, controller::StoredBuckets{});
    }
    Work();
  }

  // Both servers join, and say that they serve what they are to.
  void ServeAll() {
    Join(1, {controller::Role::kDataServer, 0});
    Join(2, {controller::Role::kParameterServer, 0});
    Join(3, {controller::Role::kParameterServer, 1});
    const auto views = control_.Sent<controller::Membership>();
    ASSERT_FALSE(views.empty());
    const auto& buckets = views.back().second.buckets;
    ASSERT_EQ(buckets.size(), 2u);
    for (std::uint32_t i = 0; i < 2; ++i) {
      control_.Tell(
          buckets[i].primary.slot + 2,
          controller::BucketsReady{{{.bucket = i, .configuration_version = buckets[i].version}}});
    }
    Work();
  }

  // Second by second: a controller that sleeps for long does not count anybody as silent.
  void WorkFor(std::chrono::seconds time) {
    for (; time.count() > 0; --time) {
      WorkAfter(std::chrono::seconds(1));
    }
  }

  void SetCordoned(const std::string& name, bool cordoned) {
    Json node = client_.Get(kNodes, {"", name}).value();
    node["spec"]["unschedulable"] = cordoned;
    ASSERT_TRUE(client_.Update(kNodes, node).ok());
  }

  void ChangeClaimOf(const std::string& pod, const Json& change) {
    ASSERT_TRUE(
        client_
            .Patch(kPersistentVolumeClaims, {kJob.key.ns, ClaimOf(pod)}, PatchType::kMerge, change)
            .ok());
  }

  // The server's volume is local.
  void BindTo(const std::string& node, const std::string& pod) {
    ChangeClaimOf(
        pod, {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", node}}}}}});
  }

  void DeleteClaimOf(const std::string& pod) {
    ASSERT_TRUE(client_.Delete(kPersistentVolumeClaims, {kJob.key.ns, ClaimOf(pod)}).ok());
  }

  void DeleteAtOnce(const std::string& pod) {
    ASSERT_TRUE(
        client_.Delete(kPods, {kJob.key.ns, pod}, {.grace_period = std::chrono::seconds(0)}).ok());
  }

  // Somebody else's pod has this name.
  void Occupy(const std::string& name) {
    ASSERT_TRUE(
        client_.Create(kPods, {{"metadata", {{"namespace", kJob.key.ns}, {"name", name}}}}).ok());
  }

  void Drain(const std::string& node, const std::string& pod) {
    BindTo(node, pod);
    SetCordoned(node, true);
    DeleteAtOnce(pod);
    Work();
  }

  [[nodiscard]] std::string ClaimOf(const std::string& pod_name) const {
    const auto pod = client_.Get(kPods, {kJob.key.ns, pod_name});
    return pod.ok() ? (*pod)["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] : Json("");
  }
};

}  // namespace adamant::kube
