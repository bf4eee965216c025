#include "operator/kube_client/cache/informer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"

namespace adamant::kube {
namespace {

struct PodValue {
  std::string name;
  std::string uid;
  std::string job;
  int step = 0;
};

std::shared_ptr<const PodValue> ParsePod(const Json& pod) {
  if (BoolAt(pod, {"spec", "ignored"})) {
    return nullptr;
  }
  return std::make_shared<PodValue>(
      PodValue{.name = KeyOf(pod).name,
               .uid = UidOf(pod),
               .job = StringAt(pod, {"metadata", "labels", "job"}),
               .step = static_cast<int>(IntAt(pod, {"spec", "step"}))});
}

Json Pod(const std::string& name, const std::string& job, int step = 0) {
  return {{"metadata", {{"namespace", "ns"}, {"name", name}, {"labels", {{"job", job}}}}},
          {"spec", {{"step", step}}}};
}

class InformerTest : public ::testing::Test {
 protected:
  using Lined = std::vector<std::string>;

  InformerTest() {
    informer_.AddIndex("job", [](const PodValue& pod) { return std::vector{pod.job}; });
    informer_.AddHandler([this](const Informer<PodValue>::Change& change) {
      std::string line = change.before == nullptr ? "+" : change.after == nullptr ? "-" : "~";
      line += change.key.name;
      lines_.push_back(line + (change.final_state_unknown ? "?" : ""));
    });
  }

  // What the informer tells its handlers in its next step.
  Lined Step() {
    lines_.clear();
    informer_.Step();
    return lines_;
  }

  Lined NamesOf(const std::string& job) {
    Lined names;
    for (const auto& pod : informer_.ByIndex("job", job)) {
      names.push_back(pod->name);
    }
    return names;
  }

  void Create(const Json& pod) { ASSERT_TRUE(client_.Create(kPods, pod).ok()); }
  void Delete(const std::string& name) { ASSERT_TRUE(client_.Delete(kPods, {"ns", name}).ok()); }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  MemoryApiServer server_{clock_};
  Client client_{server_, clock_, sleeper_};
  Lined lines_;
  Informer<PodValue> informer_{client_,
                               kPods,
                               {.selection = {.ns = "ns"}, .resync = std::chrono::hours(10)},
                               ParsePod,
                               clock_,
                               sleeper_};
};

TEST_F(InformerTest, TellsOfWhatThereIsAndThenOfChanges) {
  Create(Pod("a", "mnist"));
  EXPECT_FALSE(informer_.synced());
  EXPECT_EQ(Step(), Lined{"+a"});
  EXPECT_TRUE(informer_.synced());
  Create(Pod("b", "mnist"));
  ASSERT_TRUE(client_.Update(kPods, Pod("a", "mnist", 1)).ok());
  Delete("b");
  EXPECT_EQ(Step(), (Lined{"+b", "~a", "-b"}));
  EXPECT_EQ(informer_.Get({"ns", "a"})->step, 1);
  EXPECT_EQ(informer_.Get({"ns", "b"}), nullptr);
  EXPECT_EQ(informer_.size(), 1u);
}

TEST_F(InformerTest, IndexesFollowTheValues) {
  Create(Pod("a", "mnist"));
  Create(Pod("b", "mnist"));
  Create(Pod("c", "digits"));
  Step();
  EXPECT_EQ(NamesOf("mnist"), (Lined{"a", "b"}));
  ASSERT_TRUE(client_.Update(kPods, Pod("a", "digits")).ok());
  Delete("b");
  Step();
  EXPECT_EQ(NamesOf("mnist"), Lined{});
  EXPECT_EQ(NamesOf("digits"), (Lined{"a", "c"}));
}

TEST_F(InformerTest, ANewListFindsOutWhatWasMissed) {
  Create(Pod("gone", "mnist"));
  Create(Pod("same", "mnist"));
  Create(Pod("changed", "mnist"));
  Step();
  const auto same = informer_.Get({"ns", "same"});
  Delete("gone");
  ASSERT_TRUE(client_.Update(kPods, Pod("changed", "mnist", 7)).ok());
  Create(Pod("new", "mnist"));
  server_.Compact();
  EXPECT_EQ(Step(), Lined{});  // 410
  EXPECT_EQ(Step(), (Lined{"-gone?", "~changed", "+new"}));
  EXPECT_EQ(informer_.Get({"ns", "same"}), same);
}

TEST_F(InformerTest, AnotherUidIsAnotherObject) {
  Create(Pod("a", "mnist"));
  Step();
  const std::string first = informer_.Get({"ns", "a"})->uid;
  Delete("a");
  Create(Pod("a", "mnist"));
  server_.Compact();
  Step();
  EXPECT_EQ(Step(), (Lined{"-a?", "+a"}));
  EXPECT_NE(informer_.Get({"ns", "a"})->uid, first);
}

TEST_F(InformerTest, HoldsOnlyWhatIsSelectedAndWanted) {
  ASSERT_TRUE(
      client_.Create(kPods, Json{{"metadata", {{"namespace", "other"}, {"name", "x"}}}}).ok());
  Json ignored = Pod("ignored", "mnist");
  ignored["spec"]["ignored"] = true;
  Create(ignored);
  Create(Pod("a", "mnist"));
  EXPECT_EQ(Step(), Lined{"+a"});
  Json pod = Pod("a", "mnist");
  pod["spec"]["ignored"] = true;
  ASSERT_TRUE(client_.Update(kPods, pod).ok());
  EXPECT_EQ(Step(), Lined{"-a"});
  EXPECT_EQ(informer_.size(), 0u);
}

TEST_F(InformerTest, AnObjectThatIsNoLongerSelectedIsDeleted) {
  Informer<PodValue> mnist(
      client_, kPods, {.selection = {.label_selector = "job=mnist"}}, ParsePod, clock_, sleeper_);
  Create(Pod("a", "mnist"));
  Create(Pod("b", "digits"));
  mnist.Step();
  EXPECT_EQ(mnist.size(), 1u);
  ASSERT_TRUE(client_.Update(kPods, Pod("a", "digits")).ok());
  mnist.Step();
  EXPECT_EQ(mnist.size(), 0u);
}

TEST_F(InformerTest, AStaleCacheCatchesUp) {
  Step();
  server_.HoldWatches(server_.version());
  Create(Pod("a", "mnist"));
  EXPECT_EQ(Step(), Lined{});
  server_.ReleaseWatches();
  EXPECT_EQ(Step(), Lined{"+a"});
}

TEST_F(InformerTest, HandlersHearOfEverythingAgainAfterTheResyncTime) {
  Create(Pod("a", "mnist"));
  Step();
  EXPECT_EQ(Step(), Lined{});
  clock_.Advance(std::chrono::hours(10));
  EXPECT_EQ(Step(), Lined{"~a"});
  EXPECT_EQ(Step(), Lined{});
}

TEST_F(InformerTest, IsNotSyncedBeforeThereIsAWholeCopy) {
  server_.SetFaults([](const HttpRequest& /*request*/) { return MemoryApiServer::Fault::kRefuse; });
  EXPECT_GT(informer_.Step(), Clock::Duration::zero());
  EXPECT_FALSE(informer_.synced());
  EXPECT_FALSE(informer_.WaitUntilSynced(std::chrono::milliseconds(0)));
  server_.SetFaults(nullptr);
  informer_.Step();
  EXPECT_TRUE(informer_.synced());
}

}  // namespace
}  // namespace adamant::kube
