#include "operator/core/processes/shutdown_sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

using testing::SizeIs;

class ShutdownSequenceTest : public SmallTable {
 protected:
  ShutdownSequence shutdown_{settings_, processes_, outbox_};
};

TEST_F(ShutdownSequenceTest, WhatIsLeftIsKilledThoughNothingIsKnownOfIt) {
  shutdown_.KillLeftovers();
  const std::vector<Action> actions = Take();
  EXPECT_THAT(Pick<KillProcess>(actions), SizeIs(6));
  EXPECT_TRUE(std::holds_alternative<Finished>(actions.back())) << "after the others";
}

}  // namespace
}  // namespace adamant::controller
