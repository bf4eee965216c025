#include "services/parameter_server/rpc/controller/core_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "services/common/base/busy_meter.h"
#include "services/common/storage/memory_store.h"
#include "services/parameter_server/rpc/gate/pending.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/services/parameter_server/rpc/recording_link.h"

namespace adamant::parameter_server {
namespace {

constexpr ServerId kSelf{.slot = 0, .incarnation = 1};
constexpr ServerId kPeer{.slot = 1, .incarnation = 1};

class CoreDriverTest : public testing::Test {
 protected:
  CoreDriverTest() {
    EXPECT_TRUE(core_.ReadStored().ok());
    Configure({.version = 1, .generation = 1, .primary = kSelf, .replicas = {kSelf}});
    EXPECT_TRUE(core_.DoStorage().ok());
  }

  ~CoreDriverTest() override { driver_.Stop(); }

  void Configure(const Configuration& configuration) {
    core_.SetConfigurations(std::vector<Configuration>(2, configuration), {});
  }

  void Start() { driver_.Start(core_, std::chrono::milliseconds(1)); }

  FakeClock clock_;
  storage::MemoryStore store_;
  metrics::Registry registry_;
  const PeerMetrics peer_metrics_{registry_};
  const ReplicationMetrics replication_metrics_{registry_};
  RecordingLink link_;
  std::atomic<int> storage_wanted_ = 0;
  Peers peers_{{.job_uid = 7, .self = kSelf, .on_connected = [](const ServerId&) {}},
               peer_metrics_};
  CoreDriver driver_{
      {.peers = peers_, .controller = link_, .want_storage = [this] { ++storage_wanted_; }},
      replication_metrics_};
  ParameterServer core_{{.job_uid = 7,
                         .self = kSelf,
                         .parameters = {{.name = "w", .layer = "l", .shape = {4}}},
                         .buckets = 2,
                         .optimisers = {{.location = OptimiserLocation::kWorker}}},
                        store_,
                        clock_,
                        driver_};
};

TEST_F(CoreDriverTest, WhatIsReportedTogetherGoesOutTogether) {
  EXPECT_GT(storage_wanted_, 0);
  Start();
  const v1::MemberMessage message = link_.Receive();
  EXPECT_EQ(message.buckets_ready().buckets_size(), 2);
}

TEST_F(CoreDriverTest, TimePassesForTheCore) {
  Configure({.version = 2,
             .generation = 1,
             .primary = kSelf,
             .replicas = {kSelf, kPeer},
             .created = true});
  clock_.Advance(std::chrono::seconds(4));  // the other member has been silent for longer than D
  Start();
  EXPECT_TRUE(link_.Receive().has_buckets_ready());
  const v1::MemberMessage message = link_.Receive();
  ASSERT_EQ(message.proposals().proposals_size(), 2) << message.DebugString();
  EXPECT_EQ(message.proposals().proposals(0).kind(), v1::Proposal::DROP);
  EXPECT_EQ(message.proposals().proposals(0).subject().slot(), kPeer.slot);
}

TEST_F(CoreDriverTest, WhatIsCommittedElsewhereIsApplied) {
  Configure({.version = 2,
             .generation = 1,
             .primary = kSelf,
             .replicas = {kSelf, kPeer},
             .created = true});
  Start();
  const std::vector<float> ones(4, 1);
  Pending<std::vector<ShardAck>> acks;
  core_.Submit({.writer = {.slot = 0, .incarnation = 1},
                .updates = {{.configuration_version = 2, .sequence = 1, .values = ones}}},
               [&](std::vector<ShardAck> settled) { acks.Set(std::move(settled)); });
  const BucketId bucket = core_.layout().shards()[0].bucket;
  core_.OnPeerMessage(kPeer,
                      {.bucket = bucket,
                       .configuration_version = 2,
                       .kind = BeaconAnswer{.sent = clock_.Now(), .acked = 0}});
  core_.OnPeerMessage(
      kPeer, {.bucket = bucket, .configuration_version = 2, .kind = PrepareAck{.acked = 1}});
  EXPECT_EQ(acks.Wait([] { return false; })->at(0).outcome, PushOutcome::kApplied);
}

TEST_F(CoreDriverTest, AnApplierThatIsHeldUpIsBusy) {
  using std::chrono::seconds;
  Configure({.version = 2,
             .generation = 1,
             .primary = kSelf,
             .replicas = {kSelf, kPeer},
             .created = true});
  Start();
  const std::vector<float> ones(4, 1);
  Pending<bool> held;
  Pending<bool> release;
  core_.Submit({.writer = {.slot = 0, .incarnation = 1},
                .updates = {{.configuration_version = 2, .sequence = 1, .values = ones}}},
               [&](const std::vector<ShardAck>& /*settled*/) {
                 held.Set(true);
                 release.Wait([] { return false; });
               });
  const BucketId bucket = core_.layout().shards()[0].bucket;
  core_.OnPeerMessage(kPeer,
                      {.bucket = bucket,
                       .configuration_version = 2,
                       .kind = BeaconAnswer{.sent = clock_.Now(), .acked = 0}});
  core_.OnPeerMessage(
      kPeer, {.bucket = bucket, .configuration_version = 2, .kind = PrepareAck{.acked = 1}});
  held.Wait([] { return false; });
  BusyMeter meter;
  Clock::TimePoint now{seconds(1)};
  meter.Look(driver_.Turns(), now);
  EXPECT_EQ(meter.Look(driver_.Turns(), now += seconds(1)), seconds(1));
  EXPECT_EQ(meter.Look(driver_.Turns(), now += seconds(1)), seconds(2));
  release.Set(true);
  while (meter.Look(driver_.Turns(), now += seconds(1)) > seconds(0)) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace adamant::parameter_server
