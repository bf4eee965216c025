// Leader election, at a real API server.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/kube_client/api/leader_election.h"
#include "services/common/base/log.h"
#include "tests/integration/operator/kube_client/cluster_rig.h"

namespace adamant::kube {
namespace {

using Lined = std::vector<std::string>;

// A candidate that can be cut off.
class Candidate {
 public:
  Candidate(Transport& transport, const ObjectKey& lease, const std::string& identity)
      : transport_(transport),
        election_(Client(transport_, clock_, sleeper_),
                  {.lease = lease, .identity = identity},
                  {.started = [this](std::int64_t n) { Tell("started " + std::to_string(n)); },
                   .lost = [this] { Tell("lost"); },
                   .stopped = [this] { Tell("stopped"); },
                   .new_leader = [this](const std::string& who) { Tell("leader " + who); }},
                  clock_,
                  sleeper_) {}

  void Start() { election_.Start(); }
  void Stop() { election_.Stop(); }
  void Cut() { transport_.broken = true; }
  void Mend() { transport_.broken = false; }

  Lined told() {
    const MutexLock lock(mutex_);
    return told_;
  }
  bool Was(const std::string& line) {
    const Lined lines = told();
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  }

 private:
  void Tell(std::string line) {
    const MutexLock lock(mutex_);
    told_.push_back(std::move(line));
  }

  SystemClock clock_;
  SystemSleeper sleeper_;
  WatchedTransport transport_;
  Mutex mutex_;
  Lined told_ ABSL_GUARDED_BY(mutex_);
  LeaderElection election_;  // last: its thread uses the rest
};

class ElectionTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    first_ = std::make_unique<Candidate>(*real_, Key("lease"), "first");
    second_ = std::make_unique<Candidate>(*real_, Key("lease"), "second");
    first_->Start();
    ASSERT_TRUE(Await([this] { return first_->Was("started 0"); }));
    second_->Start();
    ASSERT_TRUE(Await([this] { return second_->Was("leader first"); }));
  }

  std::unique_ptr<Candidate> first_;
  std::unique_ptr<Candidate> second_;
};

TEST_F(ElectionTest, AStandbyLeadsWithinTheLeaseAndOneSecond) {
  const auto cut = clock_.Now();
  first_->Cut();
  EXPECT_TRUE(Await([this] { return second_->Was("started 1"); }));
  const std::chrono::duration<double> passed = clock_.Now() - cut;
  LogInfo("a standby leads", {{"seconds", passed.count()}});
  EXPECT_LE(passed.count(), 6.0);
  EXPECT_TRUE(first_->Was("lost"));
  first_->Mend();
  EXPECT_TRUE(Await([this] { return first_->Was("leader second"); }));
  EXPECT_TRUE(first_->Was("stopped"));
}

TEST_F(ElectionTest, ALeaderThatStopsIsFollowedAtOnce) {
  first_->Stop();
  const auto stopped = clock_.Now();
  EXPECT_TRUE(Await([this] { return second_->Was("started 1"); }));
  EXPECT_LE(clock_.Now() - stopped, std::chrono::seconds(2));
}

TEST_F(ElectionTest, AfterAnOutageOfTheApiOneOfThemLeads) {
  Cause("stop-api");
  EXPECT_TRUE(Await([this] { return first_->Was("lost"); }));
  Cause("start-api");
  // The lease was over by everybody's clock: who comes first leads.
  EXPECT_TRUE(Await([this] {
    const absl::StatusOr<Json> lease = NewClient().Get(kLeases, Key("lease"));
    if (!lease.ok()) {
      return false;
    }
    return StringAt(*lease, {"spec", "holderIdentity"}) == "first"
               ? first_->told().back() == "started 0"
               : first_->Was("stopped") && second_->Was("started 1");
  }));
}

}  // namespace
}  // namespace adamant::kube
