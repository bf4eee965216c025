#include "services/parameter_server/core/snapshots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/services/parameter_server/core/server_fixture.h"

// Snapshots that are asked for again.
namespace adamant::parameter_server {
namespace {

using std::chrono::seconds;
using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;

class SnapshotsTest : public ServerFixture {
 protected:
  /// Server 0 is primary of all buckets, the others hold them too.
  void CreateOnThree() {
    rig_.emplace(3);
    for (const std::uint32_t slot : {0u, 1u, 2u}) {
      ServerOptions options = Flat(4, OnWorker());
      options.min_in_sync = 2;
      rig_->Start(slot, std::move(options));
    }
    rig_->AssignAll(0);
    rig_->AddEverywhere(1);
    rig_->AddEverywhere(2);
    ASSERT_THAT(rig_->map, Each(Field(&Configuration::members, testing::SizeIs(3))));
  }

  void PushNext() {
    ASSERT_EQ(PushOne({.shard = 0,
                       .sequence = ++sequence_,
                       .kind = UpdateKind::kWeightChange,
                       .values = values_})
                  .outcome,
              PushOutcome::kApplied);
  }

 private:
  const std::vector<float> values_{1, 1, 1, 1};
  std::uint64_t sequence_ = 0;
};

TEST_F(SnapshotsTest, ACommandThatComesLateLeavesTheSnapshotAsItWas) {
  CreateOnThree();
  PushNext();
  ASSERT_TRUE(server().TakeSnapshot(1, 0, {}).ok());
  PushNext();
  const Epoch before = rig_->map[0].epoch;
  rig_->Kill(2);
  ASSERT_GT(rig_->map[0].epoch, before);
  ASSERT_TRUE(server().TakeSnapshot(1, 0, {}).ok());
  EXPECT_THAT(Values(0, 1), Each(1)) << "workers push again by now";
  EXPECT_THAT(Values(0), Each(2));
}

TEST_F(SnapshotsTest, AfterALossItIsTakenOfWhatCameBack) {
  Create(Flat(4, OnWorker()));
  PushNext();
  ASSERT_TRUE(server().TakeSnapshot(1, 0, {}).ok());
  PushNext();
  ASSERT_TRUE(rig_->Flush(0).ok());
  Restart(Flat(4, OnWorker()));
  ASSERT_TRUE(server().TakeSnapshot(1, 0, {}).ok());
  EXPECT_THAT(Values(0, 1), Each(2));
}

TEST_F(SnapshotsTest, OnlyWhatIsToBeKeptStaysInTheStore) {
  Create(Flat(4, OnWorker()));
  for (const std::uint64_t snapshot : {1, 2, 3}) {
    PushNext();
    ASSERT_TRUE(server().TakeSnapshot(snapshot, 0, {}).ok());
  }
  ASSERT_TRUE(rig_->Flush(0).ok());
  ASSERT_TRUE(Snapshots(0, rig_->store(0)).KeepOnly({1, 3}).ok());
  std::set<std::string> folders;
  ASSERT_TRUE(rig_->store(0)
                  .Scan("",
                        [&](std::string_view key, std::string_view) {
                          folders.emplace(key.substr(0, key.find('/', key.find('/') + 1)));
                          return true;
                        })
                  .ok());
  EXPECT_THAT(folders,
              testing::ElementsAre("snapshot/0000000000000001",
                                   "snapshot/0000000000000003",
                                   "snapshots/0000000000000001",
                                   "snapshots/0000000000000003"));
  EXPECT_THAT(Values(0, 1), Each(1));
  EXPECT_THAT(Values(0, 3), Each(3));
}

TEST_F(SnapshotsTest, WhoMayHaveBeenReplacedTakesNone) {
  CreateOnThree();
  PushNext();
  for (const std::uint32_t other : {1u, 2u}) {
    rig_->cut.insert({0, other});
    rig_->cut.insert({other, 0});
  }
  rig_->Advance(seconds(3));
  ASSERT_EQ(rig_->map[0].primary, rig_->holder(0)) << "nobody has taken over yet";
  EXPECT_EQ(server().TakeSnapshot(1, 0, {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SnapshotsTest, ItIsTakenByPrimariesAlone) {
  CreateOnThree();
  PushNext();
  const auto taken = rig_->server(1).TakeSnapshot(1, 0, {});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(*taken, IsEmpty());
}

}  // namespace
}  // namespace adamant::parameter_server
