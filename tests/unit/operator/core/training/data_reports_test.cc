#include "operator/core/training/data_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/core/job/first_state.h"
#include "operator/core/processes/process_table.h"

namespace adamant::controller {
namespace {

using testing::HasSubstr;

constexpr SlotId kFirstServer{Role::kDataServer, 0};
constexpr SlotId kSecondServer{Role::kDataServer, 1};

DataServerProgress Counts(std::uint64_t examples) {
  DataServerProgress progress;
  progress.training_examples = examples;
  return progress;
}

class DataReportsTest : public testing::Test {
 protected:
  DataReportsTest() : state_(NewState(settings_, 42)) {}

  std::int64_t Started() {
    const std::vector<Action> actions = outbox_.Take(state_);
    return std::count_if(actions.begin(), actions.end(), [](const Action& action) {
      return std::holds_alternative<StartProcess>(action);
    });
  }

  const JobSettings settings_{.workers = 3, .data_servers = 2, .parameter_servers = 2};
  JobState state_;
  Outbox outbox_;
  ProcessTable processes_{settings_, state_, outbox_};
  ProcessStarter starter_{settings_, outbox_, processes_};
  Outcome outcome_{state_, outbox_};
  DataReports reports_{settings_, state_, outbox_, starter_, outcome_};
};

TEST_F(DataReportsTest, TheOthersStartOnceItIsKnownHowLongTheJobIs) {
  reports_.OnProgress(kFirstServer, Counts(0), {});
  EXPECT_EQ(Started(), 0);
  reports_.OnProgress(kFirstServer, Counts(100), {});
  EXPECT_EQ(Started(), 5);
  reports_.OnProgress(kSecondServer, Counts(100), {});
  EXPECT_EQ(Started(), 0);
}

TEST_F(DataReportsTest, OtherDataFailsTheJobAsInvalid) {
  reports_.OnProgress(kFirstServer, Counts(100), {});
  reports_.OnProgress(kSecondServer, Counts(99), {});
  EXPECT_EQ(state_.phase, Phase::kFailed);
  EXPECT_TRUE(state_.invalid);
  EXPECT_THAT(state_.message, HasSubstr("data-server-1 has 99 examples"));
}

}  // namespace
}  // namespace adamant::controller
