#include "operator/kube_client/cache/informers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"

namespace adamant::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Names = std::vector<std::string>;

class InformersTest : public testing::Test {
 protected:
  InformersTest() {
    for (const char* ns : {"b", "a", "c"}) {
      const Json metadata = {{"namespace", ns}, {"name", "pod"}, {"labels", {{"job", "mnist"}}}};
      EXPECT_TRUE(client_.Create(kPods, {{"metadata", metadata}}).ok());
    }
    server_.SetFaults([this](const HttpRequest& request) {
      targets_.push_back(request.target.substr(0, request.target.find('?')));
      return request.target.find(hidden_) != std::string::npos ? MemoryApiServer::Fault::kRefuse
                                                               : MemoryApiServer::Fault::kNone;
    });
  }

  // What is kept of a pod is its namespace.
  Informers<std::string> Of(const Names& namespaces) {
    return Informers<std::string>(
        client_,
        {kPods, namespaces},
        {.selection = {.ns = "not used"}},
        [](const Json& pod) { return std::make_shared<std::string>(KeyOf(pod).ns); },
        clock_,
        sleeper_);
  }

  static Names TextsOf(const std::vector<std::shared_ptr<const std::string>>& values) {
    Names texts;
    for (const auto& value : values) {
      texts.push_back(*value);
    }
    return texts;
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  MemoryApiServer server_{clock_};
  Client client_{server_, clock_, sleeper_};
  Names targets_;
  std::string hidden_ = "no target has this";
};

TEST_F(InformersTest, EachOfTheNamespacesIsListedAndNothingElse) {
  auto informers = Of({"b", "a"});
  informers.Step();
  EXPECT_THAT(targets_, ElementsAre("/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"));
  EXPECT_THAT(TextsOf(informers.All()), ElementsAre("a", "b"));
  EXPECT_EQ(*informers.Get({"b", "pod"}), "b");
  EXPECT_EQ(informers.Get({"c", "pod"}), nullptr);
  EXPECT_EQ(informers.Get({"a", "other"}), nullptr);
}

TEST_F(InformersTest, WithoutNamespacesAllAreListedAtOnce) {
  auto informers = Of({});
  informers.Step();
  EXPECT_THAT(targets_, ElementsAre("/api/v1/pods"));
  EXPECT_THAT(TextsOf(informers.All()), ElementsAre("a", "b", "c"));
  EXPECT_EQ(*informers.Get({"c", "pod"}), "c");
}

TEST_F(InformersTest, IndexesAndHandlersAreOfAllNamespaces) {
  auto informers = Of({"a", "c"});
  Names told;
  informers.AddIndex("namespace", [](const std::string& ns) { return Names{ns, "any"}; });
  informers.AddHandler(
      [&](const Informer<std::string>::Change& change) { told.push_back(change.key.ns); });
  informers.Step();
  EXPECT_THAT(told, ElementsAre("a", "c"));
  EXPECT_THAT(TextsOf(informers.ByIndex("namespace", "any")), ElementsAre("a", "c"));
  EXPECT_THAT(TextsOf(informers.ByIndex("namespace", "c")), ElementsAre("c"));
  EXPECT_THAT(TextsOf(informers.ByIndex("namespace", "b")), IsEmpty());
}

TEST_F(InformersTest, TheyAreSyncedOnceAllAre) {
  hidden_ = "namespaces/b/";
  auto informers = Of({"a", "b"});
  informers.Step();
  EXPECT_FALSE(informers.synced());
  EXPECT_FALSE(informers.WaitUntilSynced(std::chrono::milliseconds(0)));
  EXPECT_NE(informers.Get({"a", "pod"}), nullptr) << "what is seen can be read";
  hidden_ = "no target has this";
  informers.Step();
  EXPECT_TRUE(informers.synced());
  EXPECT_TRUE(informers.WaitUntilSynced(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace adamant::kube
