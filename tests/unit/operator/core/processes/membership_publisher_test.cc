#include "operator/core/processes/membership_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <variant>
#include <vector>

#include "tests/unit/operator/core/processes/joined_servers.h"

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class MembershipPublisherTest : public JoinedServers {
 protected:
  // The views that were sent since the last call: connection and version under this term.
  std::vector<std::pair<ConnectionId, std::uint32_t>> Sent() {
    std::vector<std::pair<ConnectionId, std::uint32_t>> sent;
    for (const Action& action : outbox_.Take(state_)) {
      if (const auto* send = std::get_if<Send>(&action)) {
        if (const auto* view = std::get_if<Membership>(&send->message)) {
          EXPECT_EQ(view->version >> 32, state_.term);
          last_ = *view;
          sent.emplace_back(send->connection, static_cast<std::uint32_t>(view->version));
        }
      }
    }
    return sent;
  }

  MembershipPublisher publisher_{state_, processes_};
  Membership last_;
};

TEST_F(MembershipPublisherTest, PublishesToAllThatRunUnderANewVersion) {
  MarkLost(1);
  processes_.At(Server(2)).generation = 7;
  publisher_.Publish();
  EXPECT_THAT(Sent(), ElementsAre(Pair(1, 1), Pair(3, 1)));
  ASSERT_THAT(last_.members, SizeIs(2));
  EXPECT_EQ(last_.members[1].id, Server(2));
  EXPECT_EQ(last_.members[1].address, "host:2");
  EXPECT_EQ(last_.members[1].generation, 7u);
  publisher_.Publish();
  EXPECT_THAT(Sent(), ElementsAre(Pair(1, 2), Pair(3, 2)));
}

TEST_F(MembershipPublisherTest, PublishesChangesOnce) {
  publisher_.PublishChanges();
  EXPECT_THAT(Sent(), IsEmpty());
  publisher_.SetChanged();
  EXPECT_TRUE(publisher_.changed());
  publisher_.PublishChanges();
  EXPECT_THAT(Sent(), SizeIs(3));
  EXPECT_FALSE(publisher_.changed());
  publisher_.PublishChanges();
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(MembershipPublisherTest, RepeatsTheViewOnlyToWhomDoesNotKnowIt) {
  publisher_.Publish();
  Sent();
  publisher_.OnOutdated(2);
  publisher_.PublishChanges();
  EXPECT_THAT(Sent(), ElementsAre(Pair(3, 1)));
  publisher_.PublishChanges();
  EXPECT_THAT(Sent(), IsEmpty());
}

}  // namespace
}  // namespace adamant::controller
