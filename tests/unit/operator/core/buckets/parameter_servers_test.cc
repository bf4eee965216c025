#include "operator/core/buckets/parameter_servers.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/processes/joined_servers.h"

namespace adamant::controller {
namespace {

class ParameterServersTest : public JoinedServers {
 protected:
  ParameterServersTest() { servers_.Begin(now_); }

  ParameterServers servers_{settings_, processes_};
};

TEST_F(ParameterServersTest, AServerRunsForSpreadWhenItHasOpenedItsDisk) {
  EXPECT_TRUE(servers_.Runs(ServerIdAt(0)));
  EXPECT_FALSE(servers_.All()[0].running);
  servers_.OnOpened(0);
  EXPECT_TRUE(servers_.All()[0].running);
  EXPECT_EQ(servers_.All()[0].id, ServerIdAt(0));
  EXPECT_FALSE(servers_.All()[1].running);
}

TEST_F(ParameterServersTest, TheNextProcessOfASlotHasNotOpenedItsDisk) {
  const ServerId first = ServerIdAt(0);
  servers_.OnOpened(0);
  servers_.OnDraining(0);
  servers_.SetOldestUnflushed(0, 1.5);
  EXPECT_EQ(servers_.OldestUnflushed(0), 1.5);
  const Clock::TimePoint later = now_ + std::chrono::seconds(1);
  MarkLost(0);
  servers_.OnLost(0, later);
  EXPECT_FALSE(servers_.Runs(first));
  EXPECT_EQ(servers_.All()[0].away_since, later);
  EXPECT_EQ(servers_.OldestUnflushed(0), 0);
  Join(0, "second");
  EXPECT_TRUE(servers_.Runs(ServerIdAt(0)));
  EXPECT_FALSE(servers_.Runs(first));
  EXPECT_FALSE(servers_.All()[0].running);
  EXPECT_FALSE(servers_.All()[0].draining);
}

TEST_F(ParameterServersTest, TheZoneOfTheNodeIsOfWhomNamesNone) {
  EXPECT_EQ(servers_.All()[0].zone, "");
  servers_.SetZones({{"n", "west"}});
  EXPECT_EQ(servers_.All()[0].zone, "west");
  processes_.At(Server(0)).zone = "east";
  EXPECT_EQ(servers_.All()[0].zone, "east");
}

}  // namespace
}  // namespace adamant::controller
