#include "services/worker/rpc/work_receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "proto/adamant/v1/data_server.pb.h"
#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

rpc::IncomingFrame BatchFrame(const Intake& intake, std::uint32_t index) {
  v1::WorkReply reply;
  v1::Batch& batch = *reply.mutable_batch();
  batch.mutable_lease()->set_kind(v1::TRAIN);
  batch.mutable_lease()->set_epoch(1);
  batch.mutable_lease()->set_index(index);
  batch.mutable_lease()->set_id(index + 1);
  batch.add_labels(0);
  auto bytes = std::make_shared<std::vector<std::byte>>(intake.format().example_bytes);
  return {reply.SerializeAsString(), {std::span<const std::byte>(*bytes)}, bytes};
}

class WorkReceiverTest : public testing::Test {
 protected:
  void FillSlots() {
    while (Batch* const slot = rig_.intake.TakeSlot()) {
      slots_.push_back(slot);
    }
  }

  absl::Status Receive(std::uint32_t index) {
    return receiver_.OnFrame(BatchFrame(rig_.intake, index));
  }

  Rig rig_{{}};
  DrainedServers drained_{rig_.intake};
  std::vector<Lease> without_slot_;
  std::vector<std::uint64_t> begun_epochs_;
  WorkReceiver receiver_{
      0,
      rig_.intake,
      drained_,
      {.on_acknowledged = [](const std::vector<Lease>&) {},
       .on_epoch_closed = [](std::uint64_t) {},
       .on_snapshot_wanted = [](std::uint64_t, std::uint64_t) {},
       .on_epoch_begun = [this](DataEpoch epoch) { begun_epochs_.push_back(epoch); },
       .on_no_slot = [this](const Lease& lease) { without_slot_.push_back(lease); }}};
  std::vector<Batch*> slots_;
};

TEST_F(WorkReceiverTest, ABatchIsCopiedIntoASlot) {
  ASSERT_TRUE(Receive(3).ok());
  const Batch* const batch = rig_.intake.Take();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->lease.batch.index, 3u);
  EXPECT_EQ(batch->examples, 1u);
}

TEST_F(WorkReceiverTest, NoBatchWaitsForASlotWhileTheWorkerComesToRest) {
  FillSlots();
  rig_.synchroniser.Pause(1, rig_.now);
  ASSERT_TRUE(rig_.Pump().ok());
  ASSERT_TRUE(Receive(3).ok());
  ASSERT_EQ(without_slot_.size(), 1u);
  EXPECT_EQ(without_slot_[0].batch.index, 3u);
  EXPECT_EQ(rig_.intake.Take(), nullptr);
}

TEST_F(WorkReceiverTest, ABatchThatWaitsForASlotIsLetGoWhenAHoldBegins) {
  FillSlots();
  absl::Status status = absl::UnknownError("not received");
  std::jthread reader([&] { status = Receive(3); });
  rig_.synchroniser.Pause(1, rig_.now);
  ASSERT_TRUE(rig_.Pump().ok());
  reader.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(without_slot_.size(), 1u);
}

TEST_F(WorkReceiverTest, ABatchThatWaitsTakesTheFirstSlotThatIsFree) {
  FillSlots();
  absl::Status status = absl::UnknownError("not received");
  std::jthread reader([&] { status = Receive(3); });
  rig_.intake.Recycle(slots_.front());
  reader.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(without_slot_.empty());
  EXPECT_NE(rig_.intake.Take(), nullptr);
}

TEST_F(WorkReceiverTest, AStopEndsTheWaitForASlot) {
  FillSlots();
  absl::Status status;
  std::jthread reader([&] { status = Receive(3); });
  receiver_.Stop();
  reader.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(WorkReceiverTest, AnEpochHasBegunOnceWithItsFirstBatchThoughThatHasNoSlot) {
  FillSlots();
  receiver_.Stop();
  EXPECT_TRUE(absl::IsCancelled(Receive(3)));
  EXPECT_TRUE(absl::IsCancelled(Receive(4)));
  EXPECT_THAT(begun_epochs_, testing::ElementsAre(1u));
}

}  // namespace
}  // namespace adamant::worker
