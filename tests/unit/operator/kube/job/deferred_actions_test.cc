#include "operator/kube/job/deferred_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace adamant::kube {
namespace {

using controller::Action;
using controller::Persist;
using controller::Send;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

std::vector<std::pair<std::string, std::string>> EntriesOf(const DeferredActions& held) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Persist::Entry& entry : held.entries()) {
    entries.emplace_back(entry.key, entry.value);
  }
  return entries;
}

bool Passes(DeferredActions& held, Action action) { return held.PassesOrKeeps(action); }

TEST(AddActionTest, OfStatesAndMembershipsTheLastTakesThePlaceOfTheOneBefore) {
  std::deque<Action> waiting;
  const auto membership = [&](controller::ConnectionId connection, std::uint64_t version) {
    AddAction(Send{connection, controller::Membership{.version = version}}, waiting);
  };
  AddAction(Persist{{{"state", "one"}, {"epoch/1", "row"}}}, waiting);
  membership(1, 1);
  AddAction(Send{1, controller::OpenEpoch{.epoch = 1}}, waiting);
  membership(2, 1);
  AddAction(Persist{{{"state", "two"}, {"epoch/2", "row"}}}, waiting);
  membership(1, 2);
  membership(3, 2);
  ASSERT_THAT(waiting, SizeIs(5));
  const Persist stored{{{"state", "two"}, {"epoch/1", "row"}, {"epoch/2", "row"}}};
  EXPECT_EQ(std::get<Persist>(waiting[0]).entries, stored.entries);
  const auto version = [&](std::size_t i) {
    return std::get<controller::Membership>(std::get<Send>(waiting[i]).message).version;
  };
  EXPECT_EQ(version(1), 2u);
  EXPECT_TRUE(std::holds_alternative<controller::OpenEpoch>(std::get<Send>(waiting[2]).message));
  EXPECT_EQ(version(3), 1u) << "of another member";
  EXPECT_EQ(version(4), 2u);
}

TEST(DeferredActionsTest, OfSeveralMembershipsForAMemberTheLastIsKept) {
  DeferredActions held;
  held.Add(Persist{{{"state", "one"}}});
  for (const std::uint64_t version : {1, 2, 3}) {
    EXPECT_FALSE(Passes(held, Send{1, controller::Membership{.version = version}}));
  }
  EXPECT_THAT(held.Release(), SizeIs(1));
}

TEST(DeferredActionsTest, NothingIsHeldAtFirst) {
  DeferredActions held;
  EXPECT_TRUE(held.empty());
  EXPECT_THAT(held.entries(), IsEmpty());
  EXPECT_THAT(held.Release(), IsEmpty());
}

TEST(DeferredActionsTest, OfSeveralValuesForAKeyTheLastIsStored) {
  DeferredActions held;
  held.Add(Persist{{{"state", "one"}, {"epoch/1", "row"}}});
  EXPECT_FALSE(held.empty());
  held.Add(Persist{{{"state", "two"}, {"epoch/2", "row"}}});
  EXPECT_THAT(EntriesOf(held),
              ElementsAre(Pair("epoch/1", "row"), Pair("epoch/2", "row"), Pair("state", "two")));
}

TEST(DeferredActionsTest, APersistIsAddedToWhatIsToBeStored) {
  DeferredActions held;
  held.Add(Persist{{{"state", "one"}}});
  EXPECT_FALSE(Passes(held, Persist{{{"state", "two"}}}));
  EXPECT_THAT(EntriesOf(held), ElementsAre(Pair("state", "two")));
  EXPECT_THAT(held.Release(), IsEmpty());  // it is stored by then
}

TEST(DeferredActionsTest, WhatLeadsTheEpochPasses) {
  DeferredActions held;
  held.Add(Persist{{{"state", "one"}}});
  EXPECT_TRUE(Passes(held, Send{1, controller::OpenEpoch{.epoch = 2}}));
  EXPECT_TRUE(Passes(held, Send{1, controller::CloseEpoch{}}));
  EXPECT_TRUE(Passes(held, Send{1, controller::FlushWorker{}}));
  EXPECT_TRUE(Passes(held, Send{1, controller::TakeSnapshot{}}));
  EXPECT_TRUE(Passes(held, Send{1, controller::Evaluate{}}));
  EXPECT_TRUE(Passes(held, Send{1, controller::PausePushes{}}));
  EXPECT_TRUE(Passes(held, Send{1, controller::ResumePushes{}}));
  EXPECT_TRUE(Passes(held, controller::Note{}));
  EXPECT_TRUE(Passes(held, controller::FailoverPhase{}));
  EXPECT_THAT(held.Release(), IsEmpty());
}

TEST(DeferredActionsTest, WhatMakesOrUnmakesMembersAndRecordsIsKept) {
  const std::vector<Action> kept = {Send{1, controller::Welcome{}},
                                    Send{1, controller::OpenEpoch{.epoch = 1}},
                                    Send{1, controller::Membership{}},
                                    Send{1, controller::Stop{}},
                                    Send{1, controller::Refused{}},
                                    controller::CloseConnection{},
                                    controller::StartProcess{},
                                    controller::KillProcess{},
                                    controller::Export{},
                                    controller::WriteManifest{},
                                    controller::EpochDone{},
                                    controller::Finished{}};
  for (const Action& action : kept) {
    DeferredActions held;
    held.Add(Persist{{{"state", "one"}}});
    EXPECT_FALSE(Passes(held, action)) << action.index();
    const std::deque<Action> released = held.Release();
    ASSERT_EQ(released.size(), 1u);
    EXPECT_EQ(released[0].index(), action.index());
  }
}

TEST(DeferredActionsTest, WhatIsKeptComesOutInOrder) {
  DeferredActions held;
  held.Add(Persist{{{"state", "one"}}});
  for (std::uint64_t snapshot = 1; snapshot <= 3; ++snapshot) {
    EXPECT_FALSE(Passes(held, controller::Export{snapshot}));
    EXPECT_FALSE(Passes(held, controller::CloseConnection{snapshot}));
  }
  const std::deque<Action> released = held.Release();
  ASSERT_EQ(released.size(), 6u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(std::get<controller::Export>(released[2 * i]).snapshot, i + 1);
    EXPECT_EQ(std::get<controller::CloseConnection>(released[2 * i + 1]).connection, i + 1);
  }
}

// A member that does not know yet that it is one would not understand a command.
TEST(DeferredActionsTest, WhoIsNotWelcomedYetIsToldNothingBeforeIt) {
  DeferredActions held;
  held.Add(Persist{{{"state", "one"}}});
  EXPECT_FALSE(Passes(held, Send{7, controller::Welcome{.term = 2}}));
  EXPECT_FALSE(Passes(held, Send{7, controller::OpenEpoch{.epoch = 2}}));
  EXPECT_TRUE(Passes(held, Send{8, controller::OpenEpoch{.epoch = 2}}));
  const std::deque<Action> released = held.Release();
  ASSERT_EQ(released.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<controller::Welcome>(std::get<Send>(released[0]).message));
  EXPECT_TRUE(std::holds_alternative<controller::OpenEpoch>(std::get<Send>(released[1]).message));
}

TEST(DeferredActionsTest, AfterAReleaseNothingIsHeldAndEverybodyIsWelcomed) {
  DeferredActions held;
  held.Add(Persist{{{"state", "one"}}});
  EXPECT_FALSE(Passes(held, Send{7, controller::Welcome{}}));
  EXPECT_EQ(held.Release().size(), 1u);
  EXPECT_TRUE(held.empty());
  EXPECT_THAT(held.Release(), IsEmpty());
  held.Add(Persist{{{"state", "two"}}});
  EXPECT_TRUE(Passes(held, Send{7, controller::OpenEpoch{.epoch = 2}}));
}

}  // namespace
}  // namespace adamant::kube
