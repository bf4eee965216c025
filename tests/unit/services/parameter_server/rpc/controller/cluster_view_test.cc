#include "services/parameter_server/rpc/controller/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/parameter_server/rpc/lone_server.h"
#include "tests/unit/services/parameter_server/rpc/recording_link.h"

namespace adamant::parameter_server {
namespace {

using ::testing::HasSubstr;

constexpr ServerId kSelf{.slot = 0, .incarnation = 2};

/// Version of the membership with this number in a controller's term.
std::uint64_t VersionIn(std::uint64_t term, std::uint64_t number) { return term << 32 | number; }

class ClusterViewTest : public testing::Test {
 protected:
  ClusterViewTest() { EXPECT_TRUE(core_.ReadStored().ok()); }

  /// One bucket with these slots as members, of which the first is primary.
  static protocol::Membership Map(std::uint64_t version,
                                  ConfigurationVersion configuration_version,
                                  const std::vector<std::uint32_t>& slots) {
    protocol::Configuration bucket{.version = configuration_version, .generation = 1};
    for (const std::uint32_t slot : slots) {
      bucket.replicas.push_back({.slot = slot, .incarnation = kSelf.incarnation});
    }
    bucket.primary = bucket.replicas.front();
    return {.version = version, .buckets = {bucket}};
  }

  storage::MemoryStore store_;
  FakeClock clock_;
  IdleDriver driver_;
  metrics::Registry registry_;
  const PeerMetrics peer_metrics_{registry_};
  const ReplicationMetrics metrics_{registry_};
  RecordingLink link_;
  Peers peers_{{.job_uid = 7, .self = kSelf, .on_connected = [](const ServerId&) {}},
               peer_metrics_};
  ParameterServer core_{{.job_uid = 7, .self = kSelf}, store_, clock_, driver_};
  ClusterView view_{{.core = core_, .peers = peers_, .controller = link_}, metrics_};
};

TEST_F(ClusterViewTest, TheControllerHearsWhatIsStoredBeforeTheCoreTakesPart) {
  view_.OnMembership(Map(VersionIn(1, 1), 1, {0}));
  EXPECT_TRUE(core_.Progress().empty());
  view_.OnStored();
  EXPECT_TRUE(link_.Receive().has_stored_buckets());
  EXPECT_EQ(core_.Progress().size(), 1u);
}

TEST_F(ClusterViewTest, AControllerOfAHigherTermHearsItAgain) {
  view_.OnStored();
  EXPECT_TRUE(link_.Receive().has_stored_buckets());
  view_.OnMembership(Map(VersionIn(1, 1), 1, {0}));
  view_.OnMembership(Map(VersionIn(1, 2), 1, {0}));
  view_.OnMembership(Map(VersionIn(2, 1), 1, {0}));
  EXPECT_TRUE(link_.Receive().has_stored_buckets());
  EXPECT_EQ(link_.waiting(), 0u);
}

TEST_F(ClusterViewTest, AfterAReconnectAllIsToldAgain) {
  view_.OnRejoined();
  EXPECT_EQ(link_.waiting(), 0u) << "there is nothing to tell yet";
  view_.OnStored();
  view_.OnMembership(Map(VersionIn(1, 1), 1, {0}));
  EXPECT_TRUE(core_.DoStorage().ok());
  EXPECT_TRUE(link_.Receive().has_stored_buckets());
  view_.OnRejoined();
  EXPECT_TRUE(link_.Receive().has_stored_buckets());
  EXPECT_EQ(link_.Receive().buckets_ready().buckets_size(), 1);
}

TEST_F(ClusterViewTest, OnlyABucketWithOtherMembersCanBeHandedOver) {
  view_.OnStored();
  EXPECT_FALSE(view_.HasSuccessors());
  view_.OnMembership(Map(VersionIn(1, 1), 1, {0}));
  EXPECT_FALSE(view_.HasSuccessors());
  view_.OnMembership(Map(VersionIn(1, 2), 2, {0, 1}));
  EXPECT_TRUE(view_.HasSuccessors());
  view_.OnMembership(Map(VersionIn(1, 3), 3, {1, 0}));
  EXPECT_FALSE(view_.HasSuccessors());
}

TEST_F(ClusterViewTest, RolesAreCounted) {
  view_.OnStored();
  protocol::Membership membership = Map(VersionIn(1, 1), 1, {1});
  membership.buckets[0].learner = kSelf;
  view_.OnMembership(membership);
  EXPECT_THAT(registry_.Text(), HasSubstr("adamant_parameter_server_buckets{copy=\"learner\"} 1"));
  view_.OnMembership(Map(VersionIn(1, 2), 2, {1, 0}));
  EXPECT_THAT(registry_.Text(),
              HasSubstr("adamant_parameter_server_buckets{copy=\"secondary\"} 1"));
}

TEST_F(ClusterViewTest, ThePartsAreThoseOfTheNewestMap) {
  EXPECT_EQ(view_.OwnerOf(0), std::nullopt);
  protocol::Membership map = Map(VersionIn(1, 1), 1, {0});
  map.part_owner = {3, 4};
  view_.OnMembership(map);
  EXPECT_EQ(view_.OwnerOf(1), 4);
  EXPECT_EQ(view_.OwnerOf(2), std::nullopt);
  map.version = VersionIn(1, 2);
  map.part_owner = {3, 3};
  view_.OnMembership(map);
  EXPECT_EQ(view_.OwnerOf(1), 3);
}

}  // namespace
}  // namespace adamant::parameter_server
