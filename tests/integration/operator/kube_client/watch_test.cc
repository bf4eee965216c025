// Informers, at a real API server that is restarted, cut off and stopped in its tracks.
#include <map>
#include <nlohmann/json.hpp>

#include "operator/kube_client/cache/informer.h"
#include "services/common/base/log.h"
#include "tests/integration/operator/kube_client/cluster_rig.h"

namespace adamant::kube {
namespace {

using Values = std::map<std::string, std::string>;  // by name

class WatchTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    watched_ = std::make_unique<WatchedTransport>(*real_);
    informer_ = std::make_unique<Informer<std::string>>(
        NewClient(*watched_, clock_, sleeper_),
        kConfigMaps,
        InformerOptions{.selection = {.ns = ns_, .label_selector = "made-by=test"}},
        [](const Json& map) {
          return std::make_shared<std::string>(KeyOf(map).name + "=" +
                                               StringAt(map, {"data", "value"}));
        },
        clock_,
        sleeper_);
    informer_->AddHandler([this](const Informer<std::string>::Change& change) {
      const MutexLock lock(mutex_);
      if (change.after == nullptr) {
        told_.erase(change.key.name);
        unseen_deletions_ += change.final_state_unknown ? 1 : 0;
      } else {
        told_[change.key.name] = *change.after;
      }
    });
  }

  void TearDown() override { informer_->Stop(); }

  // Whether cache and handlers come to hold what the API does.
  bool Converges() {
    return Await([this] {
      const auto listed =
          NewClient().List(kConfigMaps, {.ns = ns_, .label_selector = "made-by=test"});
      Values there;
      if (!listed.ok()) {
        return false;
      }
      for (const Json& map : *listed) {
        const std::string name = KeyOf(map).name;
        there[name] = name + "=" + StringAt(map, {"data", "value"});
      }
      Values cached;
      for (const auto& value : informer_->All()) {
        cached[value->substr(0, value->find('='))] = *value;
      }
      const MutexLock lock(mutex_);
      return cached == there && told_ == there;
    });
  }

  void Put(const std::string& name, const std::string& value) {
    EXPECT_TRUE(NewClient().Apply(kConfigMaps, Map(name, value), {.field_manager = "test"}).ok());
  }
  void Delete(const std::string& name) {
    EXPECT_TRUE(NewClient().Delete(kConfigMaps, Key(name)).ok());
  }

  int UnseenDeletions() {
    const MutexLock lock(mutex_);
    return unseen_deletions_;
  }

  std::unique_ptr<WatchedTransport> watched_;
  std::unique_ptr<Informer<std::string>> informer_;
  Mutex mutex_;
  Values told_ ABSL_GUARDED_BY(mutex_);
  int unseen_deletions_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(WatchTest, FollowsTheApi) {
  Put("a", "1");
  informer_->Start();
  ASSERT_TRUE(informer_->WaitUntilSynced(std::chrono::seconds(60)));
  EXPECT_EQ(*informer_->Get(Key("a")), "a=1");
  Put("a", "2");
  Put("b", "1");
  Delete("a");
  EXPECT_TRUE(Converges());
  EXPECT_TRUE(watched_->ends().empty());
}

TEST_F(WatchTest, FindsOutWhatHappenedWhileTheServerWasRestarted) {
  Put("gone", "1");
  Put("changed", "1");
  informer_->Start();
  ASSERT_TRUE(informer_->WaitUntilSynced(std::chrono::seconds(60)));
  Cause("stop-api");
  Cause("start-api");
  Delete("gone");
  Put("changed", "2");
  Put("new", "1");
  EXPECT_TRUE(Converges());
}

TEST_F(WatchTest, GoesOnWhenEtcdIsRestarted) {
  Put("a", "1");
  informer_->Start();
  ASSERT_TRUE(informer_->WaitUntilSynced(std::chrono::seconds(60)));
  Cause("restart-etcd");
  EXPECT_TRUE(Await([this] {
    return NewClient().Apply(kConfigMaps, Map("a", "2"), {.field_manager = "test"}).ok();
  }));
  EXPECT_TRUE(Converges());
}

TEST_F(WatchTest, MissesNothingWhenItIsCutEverySecond) {
  informer_->Start();
  ASSERT_TRUE(informer_->WaitUntilSynced(std::chrono::seconds(60)));
  for (int i = 0; i < 4; ++i) {
    Put("a", std::to_string(i));
    Put("b" + std::to_string(i), "1");
    Cause("reset-connections");
    EXPECT_TRUE(Await([this, i] {
      return NewClient()
          .Apply(kConfigMaps, Map("a", "x" + std::to_string(i)), {.field_manager = "test"})
          .ok();
    }));
    if (i > 0) {
      Delete("b" + std::to_string(i - 1));
    }
  }
  EXPECT_TRUE(Converges());
  EXPECT_FALSE(watched_->ends().empty());
}

TEST_F(WatchTest, AServerThatSaysNothingIsFoundOutWithinHalfAMinute) {
  Put("a", "1");
  informer_->Start();
  ASSERT_TRUE(informer_->WaitUntilSynced(std::chrono::seconds(60)));
  // It keeps its connections, and its kernel answers for it.
  Cause("pause-api");
  EXPECT_TRUE(Await([this] { return !watched_->ends().empty(); }));
  const StreamEnd end = watched_->ends().front();
  LogInfo("a silent server was found out",
          {{"seconds", std::chrono::duration<double>(end.silence).count()}});
  EXPECT_TRUE(absl::IsDeadlineExceeded(end.status)) << end.status;
  EXPECT_LT(end.silence, std::chrono::seconds(30));
  Cause("resume-api");
  Put("a", "2");
  EXPECT_TRUE(Converges());
}

TEST_F(WatchTest, AQuietWatchIsRenewedFromABookmark) {
  Put("a", "1");
  informer_->Start();
  ASSERT_TRUE(informer_->WaitUntilSynced(std::chrono::seconds(60)));
  const std::string before = ResourceVersionOf(*NewClient().Get(kConfigMaps, Key("a")));
  // Others are busy: without bookmarks, the watch's version would grow old.
  const auto end = clock_.Now() + std::chrono::seconds(50);
  for (int i = 0; clock_.Now() < end; ++i) {
    EXPECT_TRUE(NewClient()
                    .Apply(kConfigMaps,
                           {{"metadata", {{"namespace", "default"}, {"name", "busy"}}},
                            {"data", {{"value", std::to_string(i)}}}},
                           {.field_manager = "test"})
                    .ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const std::vector<StreamEnd> ends = watched_->ends();
  ASSERT_EQ(ends.size(), 2u);  // after 25 s of silence, and after 20 s by itself
  EXPECT_TRUE(absl::IsDeadlineExceeded(ends[0].status)) << ends[0].status;
  EXPECT_TRUE(ends[1].status.ok()) << ends[1].status;
  EXPECT_GE(ends[1].lines, 1);
  EXPECT_NE(ends[1].target.find("timeoutSeconds=20"), std::string::npos);
  Put("a", "2");
  EXPECT_TRUE(Converges());
  EXPECT_EQ(UnseenDeletions(), 0);
}

// For a server whose storage forgets quickly, without a cache before it, and without WatchList.
using ForgetfulServerTest = WatchTest;

TEST_F(ForgetfulServerTest, AnExpiredVersionMeansANewListThatFindsTheDeletions) {
  Put("gone", "1");
  Put("changed", "1");
  watched_->max_lines = 1;
  while (!informer_->synced()) {
    sleeper_.Sleep(informer_->Step(), {});
  }
  ASSERT_EQ(informer_->size(), 2u);
  EXPECT_NE(watched_->ends().front().target.find("sendInitialEvents"), std::string::npos);
  EXPECT_FALSE(watched_->ends().front().status.ok() && watched_->ends().front().lines > 0);
  const std::string seen = ResourceVersionOf(*NewClient().Get(kConfigMaps, Key("changed")));
  Delete("gone");
  // Until the storage has forgotten what the informer has seen.
  const auto forgotten = [this, &seen] {
    Put("changed", std::to_string(clock_.Now().time_since_epoch().count()));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return absl::IsOutOfRange(NewClient().Watch(
        kConfigMaps, {.ns = ns_}, {.resource_version = seen}, [](WatchEventType, const Json&) {
          return false;
        }));
  };
  ASSERT_TRUE(Await(forgotten));
  watched_->max_lines = 1'000'000;
  EXPECT_GT(informer_->Step(), Clock::Duration::zero());  // 410
  EXPECT_EQ(informer_->size(), 2u);
  informer_->Start();
  EXPECT_TRUE(Converges());
  EXPECT_EQ(UnseenDeletions(), 1);
}

}  // namespace
}  // namespace adamant::kube
