#include "operator/kube/pods/disruption_budget.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {
namespace {

using controller::Role;
using Json = nlohmann::json;

constexpr char kName[] = "mnist-parameter-server";

TEST(DisruptionBudgetTest, ABudgetIsOfARoleOfOneJob) {
  const Json budget = BudgetObject(kJob, Role::kParameterServer, 2);
  EXPECT_EQ(budget["metadata"], MetadataOf(kJob, kName));
  EXPECT_EQ(
      budget["spec"],
      Json({{"minAvailable", 2},
            {"unhealthyPodEvictionPolicy", "AlwaysAllow"},
            {"selector",
             {{"matchLabels",
               {{"adamant.dev/job-uid", kJob.uid}, {"adamant.dev/role", "parameter-server"}}}}}}));
}

TEST(DisruptionBudgetTest, WhatWasMadeIsReadBack) {
  Json budget = BudgetObject(kJob, Role::kDataServer, 3);
  budget["metadata"]["uid"] = "u";
  const auto view = ParseBudget(budget);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->job_name, "mnist");
  EXPECT_EQ(view->job_uid, kJob.uid);
  EXPECT_EQ(view->name, "mnist-data-server");
  EXPECT_EQ(view->uid, "u");
  EXPECT_EQ(view->min_available, 3);
}

TEST(DisruptionBudgetTest, ShareOrNothingIsNoNumberOfOurs) {
  Json budget = BudgetObject(kJob, Role::kDataServer, 3);
  budget["spec"]["minAvailable"] = "50%";
  EXPECT_EQ(ParseBudget(budget)->min_available, -1);
  budget["metadata"]["labels"].erase("adamant.dev/job-uid");
  EXPECT_EQ(ParseBudget(budget), nullptr);
}

class BudgetsTest : public testing::Test {
 protected:
  bool Asks(int min_available, std::optional<int> seen = std::nullopt) {
    BudgetView view;
    view.min_available = seen.value_or(0);
    return budgets_.IsToBeWritten(kName, min_available, seen ? &view : nullptr);
  }
  void Write(int min_available) { budgets_.OnWritten(kName, min_available); }

  Budgets budgets_;
};

TEST_F(BudgetsTest, ABudgetIsWrittenOnceThoughTheCacheIsOld) {
  EXPECT_TRUE(Asks(2));
  EXPECT_TRUE(Asks(2)) << "the write has failed";
  Write(2);
  EXPECT_FALSE(Asks(2));
  EXPECT_FALSE(Asks(2, 2));
  EXPECT_TRUE(Asks(3, 2));
  Write(3);
  EXPECT_FALSE(Asks(3, 2));
}

TEST_F(BudgetsTest, OneThatIsThereAlreadyIsNotWritten) { EXPECT_FALSE(Asks(2, 2)); }

TEST_F(BudgetsTest, OneThatIsDeletedIsMadeAgain) {
  Write(2);
  ASSERT_FALSE(Asks(2, 2));
  EXPECT_TRUE(Asks(2));
}

TEST_F(BudgetsTest, OneThatSomebodyHasChangedIsChangedBack) {
  Write(2);
  ASSERT_FALSE(Asks(2, 2));
  EXPECT_TRUE(Asks(2, 0));
}

}  // namespace
}  // namespace adamant::kube
