#include "operator/kube_client/api/leader_election.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Fault = MemoryApiServer::Fault;
using Lined = std::vector<std::string>;

const ObjectKey kLease{"adamant", "operator"};

// A candidate whose time is its own: clocks of two machines agree on nothing but their pace.
struct Candidate {
  Candidate(Transport& server, const std::string& identity)
      : client(server, clock, sleeper),
        election(std::make_unique<LeaderElection>(
            client,
            LeaderElectionOptions{.lease = kLease, .identity = identity},
            LeaderCallbacks{
                .started =
                    [this](std::int64_t n) { told.push_back("started " + std::to_string(n)); },
                .lost = [this] { told.emplace_back("lost"); },
                .stopped = [this] { told.emplace_back("stopped"); },
                .new_leader = [this](const std::string& who) { told.push_back("leader " + who); }},
            clock,
            sleeper)) {}

  // Steps until `time` has passed, and returns what was told.
  Lined Run(Clock::Duration time) {
    told.clear();
    const Clock::TimePoint end = clock.Now() + time;
    while (clock.Now() < end) {
      const Clock::Duration wait = election->Step();
      EXPECT_GT(wait, Clock::Duration::zero());
      clock.Advance(std::min(wait, end - clock.Now()));
    }
    return told;
  }

  FakeClock clock;
  FakeSleeper sleeper{clock};
  Client client;
  Lined told;
  std::unique_ptr<LeaderElection> election;
};

class LeaderElectionTest : public ::testing::Test {
 protected:
  // Both live through the same time.
  void RunBoth(Clock::Duration time) {
    first_.told.clear();
    second_.told.clear();
    Lined first;
    Lined second;
    for (Clock::Duration run{}; run < time; run += milliseconds(100)) {
      for (const std::string& line : first_.Run(milliseconds(100))) {
        first.push_back(line);
      }
      for (const std::string& line : second_.Run(milliseconds(100))) {
        second.push_back(line);
      }
    }
    first_.told = first;
    second_.told = second;
  }

  Json Spec() { return (*first_.client.Get(kLeases, kLease))["spec"]; }

  FakeClock server_clock_;
  MemoryApiServer server_{server_clock_};
  Candidate first_{server_, "first"};
  Candidate second_{server_, "second"};
};

TEST_F(LeaderElectionTest, TheFirstToComeLeadsAndGoesOnLeading) {
  EXPECT_EQ(first_.Run(seconds(1)), (Lined{"started 0", "leader first"}));
  EXPECT_EQ(Spec()["holderIdentity"], "first");
  EXPECT_EQ(Spec()["leaseDurationSeconds"], 5);
  RunBoth(seconds(30));
  EXPECT_EQ(first_.told, Lined{});
  EXPECT_EQ(second_.told, Lined{"leader first"});
}

TEST_F(LeaderElectionTest, RenewsOnceASecond) {
  first_.Run(seconds(1));
  const std::uint64_t before = server_.requests();
  first_.Run(seconds(10));
  EXPECT_EQ(server_.requests() - before, 10u);
}

TEST_F(LeaderElectionTest, AStandbyLeadsWithinTheLeaseAndOneSecond) {
  RunBoth(seconds(10));
  // The leader dies right after a renewal.
  first_.election->Step();
  EXPECT_EQ(second_.Run(milliseconds(4900)), Lined{});
  EXPECT_EQ(second_.Run(milliseconds(1100)), (Lined{"started 1", "leader second"}));
  EXPECT_EQ(Spec()["leaseTransitions"], 1);
}

TEST_F(LeaderElectionTest, TimesWrittenByOthersDecideNothing) {
  second_.clock.Advance(std::chrono::hours(100));
  RunBoth(seconds(10));
  EXPECT_EQ(second_.told, Lined{"leader first"});
  // A lease from a clock far in the future, not renewed: five seconds of ours are enough.
  Json lease = *first_.client.Get(kLeases, kLease);
  lease["spec"]["holderIdentity"] = "dead";
  lease["spec"]["renewTime"] = "2100-01-01T00:00:00.000000Z";
  ASSERT_TRUE(first_.client.Update(kLeases, lease).ok());
  EXPECT_EQ(second_.Run(milliseconds(4900)), Lined{"leader dead"});
  EXPECT_EQ(second_.Run(milliseconds(1100)), (Lined{"started 1", "leader second"}));
}

TEST_F(LeaderElectionTest, ALeaseThatIsTouchedButNotRenewedIsNotRenewed) {
  RunBoth(seconds(3));
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(first_.client
                    .Patch(kLeases,
                           kLease,
                           PatchType::kMerge,
                           {{"metadata", {{"labels", {{"touched", std::to_string(i)}}}}}})
                    .ok());
    second_.Run(seconds(1));
  }
  EXPECT_EQ(Spec()["holderIdentity"], "second");
  // … and what others have put into the object stays.
  EXPECT_EQ((*first_.client.Get(kLeases, kLease))["metadata"]["labels"]["touched"], "5");
}

TEST_F(LeaderElectionTest, AFailedRenewalIsNoLossYet) {
  first_.Run(seconds(1));
  server_.SetFaults([](const HttpRequest&) { return Fault::kRefuse; });
  EXPECT_EQ(first_.Run(milliseconds(2000)), Lined{});
  server_.SetFaults(nullptr);
  EXPECT_EQ(first_.Run(seconds(5)), Lined{});
}

TEST_F(LeaderElectionTest, WithoutTheApiLeadershipIsLostInTimeAndComesBack) {
  first_.Run(seconds(1));
  const Clock::TimePoint renewed = first_.clock.Now();  // about to renew
  first_.Run(milliseconds(1));
  server_.SetFaults([](const HttpRequest&) { return Fault::kRefuse; });
  EXPECT_EQ(first_.Run(renewed + milliseconds(3499) - first_.clock.Now()), Lined{});
  EXPECT_EQ(first_.Run(milliseconds(10)), Lined{"lost"});
  EXPECT_EQ(first_.Run(std::chrono::minutes(2)), Lined{});
  server_.SetFaults(nullptr);
  // Nobody else has taken the lease: it is the same reign.
  EXPECT_EQ(first_.Run(seconds(1)), Lined{"started 0"});
}

TEST_F(LeaderElectionTest, WhoWasCutOffSeesThatAnotherOneLeads) {
  RunBoth(seconds(3));
  server_.SetFaults([](const HttpRequest& request) {
    return request.body.find("\"first\"") != std::string::npos ? Fault::kRefuse : Fault::kNone;
  });
  RunBoth(seconds(10));
  EXPECT_EQ(first_.told, (Lined{"lost", "stopped", "leader second"}));
  EXPECT_EQ(second_.told, (Lined{"started 1", "leader second"}));
}

TEST_F(LeaderElectionTest, ARenewalWhoseAnswerIsLostIsARenewal) {
  first_.Run(seconds(1));
  bool lose = true;
  server_.SetFaults([&lose](const HttpRequest& request) {
    return std::exchange(lose, false) && request.method == "PATCH" ? Fault::kLoseAnswer
                                                                   : Fault::kNone;
  });
  EXPECT_EQ(first_.Run(seconds(10)), Lined{});
  EXPECT_FALSE(lose);
}

// Lets something happen between a candidate's read and its write.
class BeforeWrites final : public Transport {
 public:
  BeforeWrites(Transport& transport, std::function<void()> act)
      : transport_(transport), act_(std::move(act)) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request,
                                    const Cancellation& cancellation) override {
    if (request.method != "GET") {
      act_();
    }
    return transport_.Send(request, cancellation);
  }
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request,
                                      milliseconds idle,
                                      const std::function<bool(std::string_view line)>& on_line,
                                      const Cancellation& cancellation) override {
    return transport_.Stream(request, idle, on_line, cancellation);
  }

 private:
  Transport& transport_;
  const std::function<void()> act_;
};

TEST_F(LeaderElectionTest, OfTwoThatTakeTheLeaseAtOnceOneGetsIt) {
  BeforeWrites late(server_, [this] { second_.election->Step(); });
  Candidate third(late, "third");
  // Of a lease that nobody has made yet.
  third.election->Step();
  EXPECT_EQ(second_.told, (Lined{"started 0", "leader second"}));
  EXPECT_EQ(third.told, Lined{"leader second"});
  // Of a lease whose holder is dead.
  Json lease = *first_.client.Get(kLeases, kLease);
  lease["spec"]["holderIdentity"] = "dead";
  ASSERT_TRUE(first_.client.Update(kLeases, lease).ok());
  second_.election->Step();
  third.election->Step();
  second_.clock.Advance(seconds(6));
  third.clock.Advance(seconds(6));
  second_.told.clear();
  third.told.clear();
  third.election->Step();
  EXPECT_EQ(second_.told, (Lined{"started 1", "leader second"}));
  EXPECT_EQ(third.told, Lined{"leader second"});
}

TEST_F(LeaderElectionTest, ALeaderThatIsOverwrittenStands) {
  first_.Run(seconds(1));
  Json lease = *first_.client.Get(kLeases, kLease);
  lease["spec"]["holderIdentity"] = "other";
  ASSERT_TRUE(first_.client.Update(kLeases, lease).ok());
  EXPECT_EQ(first_.Run(seconds(2)), (Lined{"stopped", "leader other"}));
}

TEST_F(LeaderElectionTest, ADeletedLeaseIsTakenAgain) {
  first_.Run(seconds(1));
  ASSERT_TRUE(first_.client.Delete(kLeases, kLease).ok());
  EXPECT_EQ(first_.Run(seconds(3)), Lined{});
  EXPECT_EQ(Spec()["holderIdentity"], "first");
}

TEST_F(LeaderElectionTest, WhoStopsGivesTheLeaseUp) {
  RunBoth(seconds(3));
  first_.told.clear();
  first_.election->Stop();
  EXPECT_EQ(first_.told, Lined{"stopped"});
  EXPECT_EQ(Spec()["holderIdentity"], "");
  EXPECT_EQ(second_.Run(milliseconds(700)), (Lined{"started 1", "leader second"}));
  first_.election->Stop();
  EXPECT_EQ(Spec()["holderIdentity"], "second");
}

TEST_F(LeaderElectionTest, AStandbyThatStopsLeavesTheLeaseAlone) {
  RunBoth(seconds(3));
  second_.election->Stop();
  EXPECT_EQ(second_.told, Lined{"leader first"});
  EXPECT_EQ(Spec()["holderIdentity"], "first");
}

}  // namespace
}  // namespace adamant::kube
