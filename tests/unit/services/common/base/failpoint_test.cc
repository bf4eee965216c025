#include "services/common/base/failpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "services/common/base/status_macros.h"

#ifdef ADAMANT_FAILPOINTS
#include <signal.h>

#include <cstdlib>
#include <thread>
#include <vector>
#endif

namespace adamant {
namespace {

// The failpoints of these tests.
void Plain() { ADAMANT_FAILPOINT("test/plain"); }

absl::Status WithStatus() {
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("test/status"));
  return absl::OkStatus();
}

#ifndef ADAMANT_FAILPOINTS

TEST(FailpointTest, LeavesNothingBehindWhenCompiledOut) {
  setenv("ADAMANT_FAILPOINTS", "test/plain=crash;test/status=error", 1);
  Plain();
  EXPECT_TRUE(WithStatus().ok());
}

#else

class FailpointTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override { EXPECT_TRUE(failpoint::SetActions("").ok()); }
};

TEST_F(FailpointTest, DoesNothingUnlessAsked) {
  Plain();
  EXPECT_TRUE(WithStatus().ok());
  EXPECT_EQ(failpoint::Passes("test/plain"), 0u);
}

TEST_F(FailpointTest, ErrorHappensCountTimesAfterSkippedPasses) {
  ASSERT_TRUE(failpoint::SetActions("test/status=error*2@1").ok());
  std::vector<absl::StatusCode> codes;
  for (int i = 0; i < 5; ++i) {
    codes.push_back(WithStatus().code());
  }
  using absl::StatusCode;
  EXPECT_EQ(codes,
            (std::vector{StatusCode::kOk,
                         StatusCode::kUnavailable,
                         StatusCode::kUnavailable,
                         StatusCode::kOk,
                         StatusCode::kOk}));
  EXPECT_EQ(failpoint::Passes("test/status"), 5u);
}

TEST_F(FailpointTest, ErrorHasTheCodeAskedForAndNamesTheFailpoint) {
  ASSERT_TRUE(failpoint::SetActions("test/plain=count;test/status=error(data_loss)").ok());
  EXPECT_EQ(WithStatus(), absl::DataLossError("failpoint test/status"));
  ASSERT_TRUE(failpoint::SetActions("test/status=error(resource_exhausted)").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(WithStatus()));
}

TEST_F(FailpointTest, NewActionsTakeEffectAtPlacesAlreadyPassed) {
  EXPECT_TRUE(WithStatus().ok());
  ASSERT_TRUE(failpoint::SetActions("test/status=error").ok());
  EXPECT_FALSE(WithStatus().ok());
  ASSERT_TRUE(failpoint::SetActions("").ok());
  EXPECT_TRUE(WithStatus().ok());
}

TEST_F(FailpointTest, CrashIsSudden) {
  EXPECT_EXIT(
      {
        failpoint::SetActions("test/plain=crash@1").IgnoreError();
        Plain();
        Plain();
      },
      testing::KilledBySignal(SIGKILL),
      "test/plain");
}

TEST_F(FailpointTest, ActionsComeFromTheEnvironment) {
  EXPECT_EXIT(
      {
        setenv("ADAMANT_FAILPOINTS", "test/status=error(data_loss)", 1);
        std::exit(absl::IsDataLoss(WithStatus()) ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "");
}

TEST_F(FailpointTest, MistakeInTheEnvironmentAborts) {
  EXPECT_EXIT(
      {
        setenv("ADAMANT_FAILPOINTS", "test/plain=explode", 1);
        Plain();
      },
      testing::KilledBySignal(SIGABRT),
      "test/plain=explode");
}

TEST_F(FailpointTest, ErrorWhereNoneCanBeReturnedAborts) {
  EXPECT_EXIT(
      {
        failpoint::SetActions("test/plain=error").IgnoreError();
        Plain();
      },
      testing::KilledBySignal(SIGABRT),
      "test/plain is a failpoint that cannot return an error");
}

TEST_F(FailpointTest, MistakesAreQuotedAndChangeNothing) {
  ASSERT_TRUE(failpoint::SetActions("test/status=error").ok());
  for (const std::string_view bad : {"test/status",
                                     "=crash",
                                     "a/b=",
                                     "a/b=crash()",
                                     "a/b=count(1)",
                                     "a/b=pause",
                                     "a/b=pause(x)",
                                     "a/b=pause(1",
                                     "a/b=pause(3600001)",
                                     "a/b=error()",
                                     "a/b=error(odd)",
                                     "a/b=crash*",
                                     "a/b=crash@-1",
                                     "a/b=crash@1*2",
                                     "a/b=count;a/b=crash"}) {
    const absl::Status status = failpoint::SetActions("c/d=count;" + std::string(bad));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    const std::string last(bad.substr(bad.find(';') + 1));
    EXPECT_NE(status.message().find(last), std::string::npos) << status;
  }
  EXPECT_FALSE(WithStatus().ok());
}

TEST_F(FailpointTest, HandlerStandsInForTheActionsOfItsThread) {
  ASSERT_TRUE(failpoint::SetActions("test/plain=crash;test/status=crash").ok());
  std::vector<std::string> outer;
  std::vector<std::string> inner;
  const auto note = [](std::vector<std::string>& names) {
    return [&names](std::string_view name) {
      names.emplace_back(name);
      return absl::OkStatus();
    };
  };
  {
    const failpoint::ScopedHandler first(note(outer));
    Plain();
    {
      const failpoint::ScopedHandler second(note(inner));
      EXPECT_TRUE(WithStatus().ok());
    }
    Plain();
    const failpoint::ScopedHandler third(
        [](std::string_view name) { return absl::AbortedError(std::string(name)); });
    EXPECT_EQ(WithStatus(), absl::AbortedError("test/status"));
  }
  EXPECT_EQ(outer, (std::vector<std::string>{"test/plain", "test/plain"}));
  EXPECT_EQ(inner, (std::vector<std::string>{"test/status"}));
}

TEST_F(FailpointTest, HandlerDoesNotConcernOtherThreads) {
  ASSERT_TRUE(failpoint::SetActions("test/status=error").ok());
  const failpoint::ScopedHandler handler([](std::string_view) { return absl::OkStatus(); });
  EXPECT_TRUE(WithStatus().ok());
  std::thread([] { EXPECT_TRUE(absl::IsUnavailable(WithStatus())); }).join();
}

TEST_F(FailpointTest, ThreadsShareTheCount) {
  ASSERT_TRUE(failpoint::SetActions("test/status=error*100;test/plain=count").ok());
  std::atomic<int> errors = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int pass = 0; pass < 100; ++pass) {
        Plain();
        errors += WithStatus().ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(errors, 100);
  EXPECT_EQ(failpoint::Passes("test/plain"), 400u);
  EXPECT_EQ(failpoint::Passes("test/status"), 400u);
}

TEST_F(FailpointTest, RegistryKnowsWhatWasReached) {
  Plain();
  WithStatus().IgnoreError();
  EXPECT_EQ(failpoint::Reached(), (std::vector<std::string>{"test/plain", "test/status"}));
}

#endif

}  // namespace
}  // namespace adamant
