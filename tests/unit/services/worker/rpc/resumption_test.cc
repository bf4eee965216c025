#include "services/worker/rpc/resumption.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

Resumption::WallTime At(int second) { return Resumption::WallTime(std::chrono::seconds(second)); }

TEST(ResumptionTest, IsTheFirstAcknowledgementAfterADisturbance) {
  Resumption resumption;
  resumption.Look(5, At(1));
  EXPECT_EQ(resumption.timestamp(), 0) << "nothing has happened";
  resumption.OnDisturbed(7);
  resumption.Look(7, At(2));
  EXPECT_EQ(resumption.timestamp(), 0) << "these were acknowledged before";
  resumption.OnDisturbed(7);  // the next of the same fault
  resumption.Look(8, At(3));
  resumption.Look(9, At(4));
  EXPECT_EQ(resumption.timestamp(), 3);
  resumption.OnDisturbed(9);
  resumption.Look(10, At(9));
  EXPECT_EQ(resumption.timestamp(), 9);
}

}  // namespace
}  // namespace adamant::worker
