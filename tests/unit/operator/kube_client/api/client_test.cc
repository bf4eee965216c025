#include "operator/kube_client/api/client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/scripted_transport.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kPodPath[] = "/api/v1/namespaces/default/pods/web";
const ObjectKey kWeb{"default", "web"};

Json Pod() { return {{"metadata", {{"namespace", "default"}, {"name", "web"}}}}; }

class ClientTest : public ::testing::Test {
 protected:
  ~ClientTest() override { EXPECT_EQ(transport_.left(), 0u); }

  [[nodiscard]] Client NewClient(const ClientOptions& options = {}) {
    return {transport_, clock_, sleeper_, options};
  }

  HttpRequest Last() { return transport_.requests().back(); }

  [[nodiscard]] Clock::Duration Slept() const {
    const std::vector<Clock::Duration> sleeps = sleeper_.sleeps();
    return std::accumulate(sleeps.begin(), sleeps.end(), Clock::Duration::zero());
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  ScriptedTransport transport_;
};

TEST_F(ClientTest, GetsObjectsAndTheirSubresources) {
  transport_.Expect("GET", kPodPath, Answer(200, R"({"metadata":{"uid":"u"}})"));
  transport_.Expect("GET", std::string(kPodPath) + "/status", Answer(200, R"({"status":{}})"));
  const Client client = NewClient();
  EXPECT_EQ(UidOf(*client.Get(kPods, kWeb)), "u");
  EXPECT_TRUE(client.Get(kPods, kWeb, "status").ok());
  EXPECT_EQ(Last().headers.at("accept"), "application/json");
}

TEST_F(ClientTest, CreatesWhereTheMetadataSay) {
  transport_.Expect("POST", "/api/v1/namespaces/default/pods", Answer(201));
  ASSERT_TRUE(NewClient().Create(kPods, Pod()).ok());
  EXPECT_EQ(Last().target, "/api/v1/namespaces/default/pods");
  EXPECT_EQ(Last().headers.at("content-type"), "application/json");
  const Json sent = *ParseJson(Last().body);
  EXPECT_EQ(sent["kind"], "Pod");
  EXPECT_EQ(sent["apiVersion"], "v1");
}

TEST_F(ClientTest, AStrictCreateAndADryRunSaySo) {
  transport_.Expect("POST", "/api/v1/namespaces/default/pods", Answer(201));
  ASSERT_TRUE(NewClient().Create(kPods, Pod(), {.strict = true, .dry_run = true}).ok());
  EXPECT_EQ(Last().target, "/api/v1/namespaces/default/pods?fieldValidation=Strict&dryRun=All");
}

TEST_F(ClientTest, WarningsOfAnswersAreTold) {
  std::vector<std::string> warnings;
  const Client client =
      NewClient().WithWarnings([&](const std::string& text) { warnings.push_back(text); });
  transport_.Expect(
      "GET",
      kPodPath,
      Answer(
          200, "{}", {{"warning", R"(299 - "unknown field \"a, b\"", 299 - "two", 299 - "cu)"}}));
  ASSERT_TRUE(client.Get(kPods, kWeb).ok());
  EXPECT_EQ(warnings, (std::vector<std::string>{"unknown field \"a, b\"", "two"}));
}

TEST_F(ClientTest, ASubresourceMayBeOfAnotherKind) {
  transport_.Expect("POST", std::string(kPodPath) + "/eviction", Answer(201));
  Json eviction = Pod();
  eviction["kind"] = "Eviction";
  eviction["apiVersion"] = "policy/v1";
  ASSERT_TRUE(NewClient().Create(kPods, eviction, {.subresource = "eviction"}).ok());
  EXPECT_EQ((*ParseJson(Last().body))["kind"], "Eviction");
}

TEST_F(ClientTest, UpdatesAndPatchesSayHow) {
  const Client client = NewClient();
  transport_.Expect("PUT", std::string(kPodPath) + "/status", Answer(200));
  ASSERT_TRUE(client.Update(kPods, Pod(), "status").ok());
  const std::vector<std::pair<PatchType, std::string>> types = {
      {PatchType::kMerge, "application/merge-patch+json"},
      {PatchType::kStrategicMerge, "application/strategic-merge-patch+json"},
      {PatchType::kJson, "application/json-patch+json"}};
  for (const auto& [type, content] : types) {
    transport_.Expect("PATCH", kPodPath, Answer(200));
    ASSERT_TRUE(client.Patch(kPods, kWeb, type, Json::object()).ok());
    EXPECT_EQ(Last().headers.at("content-type"), content);
  }
}

TEST_F(ClientTest, AppliesAsAFieldManager) {
  const Client client = NewClient();
  transport_.Expect("PATCH", kPodPath, Answer(200));
  ASSERT_TRUE(
      client.Apply(kPods, Pod(), {.field_manager = "a b", .force = true, .subresource = "status"})
          .ok());
  EXPECT_EQ(Last().target, std::string(kPodPath) + "/status?fieldManager=a%20b&force=true");
  EXPECT_EQ(Last().headers.at("content-type"), "application/apply-patch+yaml");
  transport_.Expect("PATCH", kPodPath, Refusal(409, "Conflict", "conflict with \"kubectl\""));
  EXPECT_TRUE(absl::IsAborted(client.Apply(kPods, Pod(), {.field_manager = "a"}).status()));
  EXPECT_EQ(Last().target, std::string(kPodPath) + "?fieldManager=a");
}

TEST_F(ClientTest, DeletesThisVeryObject) {
  transport_.Expect("DELETE", kPodPath, Answer(202));
  ASSERT_TRUE(NewClient()
                  .Delete(kPods,
                          kWeb,
                          {.uid = "u",
                           .resource_version = "7",
                           .grace_period = seconds(0),
                           .propagation = Propagation::kForeground})
                  .ok());
  const Json sent = *ParseJson(Last().body);
  EXPECT_EQ(sent["preconditions"]["uid"], "u");
  EXPECT_EQ(sent["preconditions"]["resourceVersion"], "7");
  EXPECT_EQ(sent["gracePeriodSeconds"], 0);
  EXPECT_EQ(sent["propagationPolicy"], "Foreground");
}

TEST_F(ClientTest, DeletesCollectionsOfOneNamespaceOnly) {
  transport_.Expect("DELETE", "/api/v1/namespaces/default/pods?labelSelector=", Answer(200));
  const Client client = NewClient();
  EXPECT_TRUE(
      client.DeleteCollection(kPods, {.ns = "default", .label_selector = "job=mnist"}).ok());
  EXPECT_EQ(Last().target, "/api/v1/namespaces/default/pods?labelSelector=job%3Dmnist");
  EXPECT_TRUE(absl::IsInvalidArgument(client.DeleteCollection(kPods, {})));
}

TEST_F(ClientTest, ReadsWhatIsNoObject) {
  transport_.Expect("GET", "/readyz", Answer(200, "ok"));
  EXPECT_EQ(*NewClient().GetRaw("/readyz"), "ok");
  EXPECT_FALSE(Last().headers.contains("accept")) << "it may be of any type";
}

TEST_F(ClientTest, AWrongNameIsNeverSent) {
  EXPECT_TRUE(absl::IsInvalidArgument(NewClient().Get(kPods, {"default", "../x"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(NewClient().Create(kPods, Json::object()).status()));
  EXPECT_TRUE(transport_.requests().empty());
}

TEST_F(ClientTest, ErrorsOfTheApiBecomeCodes) {
  const std::vector<std::tuple<int, std::string, absl::StatusCode>> cases = {
      {400, "BadRequest", absl::StatusCode::kInvalidArgument},
      {401, "Unauthorized", absl::StatusCode::kUnauthenticated},
      {403, "Forbidden", absl::StatusCode::kPermissionDenied},
      {404, "NotFound", absl::StatusCode::kNotFound},
      {405, "MethodNotAllowed", absl::StatusCode::kUnimplemented},
      {409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
      {409, "Conflict", absl::StatusCode::kAborted},
      {410, "Expired", absl::StatusCode::kOutOfRange},
      {413, "RequestEntityTooLarge", absl::StatusCode::kInvalidArgument},
      {415, "UnsupportedMediaType", absl::StatusCode::kUnimplemented},
      {422, "Invalid", absl::StatusCode::kInvalidArgument},
      {429, "TooManyRequests", absl::StatusCode::kResourceExhausted},
      {500, "InternalError", absl::StatusCode::kUnavailable},
      {503, "ServiceUnavailable", absl::StatusCode::kUnavailable},
      {504, "Timeout", absl::StatusCode::kDeadlineExceeded},
      {302, "", absl::StatusCode::kUnknown}};
  for (const auto& [http, reason, code] : cases) {
    transport_.Expect("PUT", kPodPath, Refusal(http, reason, "the reason why"));
    const absl::Status status = NewClient().Update(kPods, Pod()).status();
    EXPECT_EQ(status.code(), code) << http << " " << reason;
    EXPECT_EQ(status.message(), std::string("PUT ") + kPodPath + ": the reason why");
  }
}

TEST_F(ClientTest, ARefusalNamesTheFieldsOnce) {
  const Json refusal = {{"kind", "Status"},
                        {"reason", "Invalid"},
                        {"message", "Pod \"web\" is invalid: spec.a: Required value"},
                        {"details",
                         {{"causes",
                           {{{"field", "spec.a"}, {"message", "Required value"}},
                            {{"field", "spec.b"}, {"message", "must be positive"}}}}}}};
  transport_.Expect("PUT", kPodPath, Answer(422, refusal.dump()));
  EXPECT_EQ(NewClient().Update(kPods, Pod()).status().message(),
            std::string("PUT ") + kPodPath +
                ": Pod \"web\" is invalid: spec.a: Required value; spec.b: must be positive");
}

TEST_F(ClientTest, AProxysErrorIsQuoted) {
  transport_.Expect("PUT", kPodPath, Answer(502, "<html>bad gateway</html>"));
  const absl::Status status = NewClient().Update(kPods, Pod()).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("HTTP 502: <html>"), std::string::npos) << status;
}

TEST_F(ClientTest, AnAnswerThatIsNoJsonIsDataLoss) {
  transport_.Expect("GET", kPodPath, Answer(200, "<html>"));
  EXPECT_TRUE(absl::IsDataLoss(NewClient().Get(kPods, kWeb).status()));
}

TEST_F(ClientTest, ComesAgainWhenTheServerSaysEvenWithACreate) {
  for (const int status : {429, 503}) {
    transport_.Expect("POST", "/api", Answer(status, "{}", {{"retry-after", "3"}}));
    transport_.Expect("POST", "/api", Answer(201));
    const Clock::Duration before = Slept();
    EXPECT_TRUE(NewClient().Create(kPods, Pod()).ok());
    EXPECT_EQ(Slept() - before, seconds(3));
  }
}

TEST_F(ClientTest, ComesAgainOnlySoOften) {
  for (int i = 0; i < 3; ++i) {
    transport_.Expect("POST", "/api", Answer(429, "{}", {{"retry-after", "1"}}));
  }
  EXPECT_TRUE(
      absl::IsResourceExhausted(NewClient({.max_retries = 2}).Create(kPods, Pod()).status()));
  EXPECT_EQ(Slept(), seconds(2));
}

TEST_F(ClientTest, DoesNotWaitForEver) {
  for (const char* time : {"3600", "-1", "soon", "99999999999999999999", ""}) {
    transport_.Expect("POST", "/api", Answer(429, "{}", {{"retry-after", time}}));
    EXPECT_TRUE(absl::IsResourceExhausted(NewClient().Create(kPods, Pod()).status())) << time;
  }
  EXPECT_EQ(Slept(), seconds(0));
}

TEST_F(ClientTest, AWriteThatMayHaveBeenCarriedOutIsNotRepeated) {
  const Client client = NewClient();
  transport_.Expect("POST", "/api", Broken());
  EXPECT_TRUE(absl::IsUnavailable(client.Create(kPods, Pod()).status()));
  transport_.Expect("PUT", "/api", Answer(500, "{}", {{"retry-after", "1"}}));
  EXPECT_TRUE(absl::IsUnavailable(client.Update(kPods, Pod()).status()));
  transport_.Expect("DELETE", "/api", Broken(absl::DeadlineExceededError("slow")));
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Delete(kPods, kWeb)));
  // What a disruption budget forbids now may be allowed much later: no time is named.
  transport_.Expect("POST", "/api", Refusal(429, "TooManyRequests"));
  EXPECT_TRUE(
      absl::IsResourceExhausted(client.Create(kPods, Pod(), {.subresource = "eviction"}).status()));
}

TEST_F(ClientTest, AReadIsRepeatedWithGrowingWaits) {
  transport_.Expect("GET", kPodPath, Broken());
  transport_.Expect("GET", kPodPath, Answer(500));
  transport_.Expect("GET", kPodPath, Answer(200));
  EXPECT_TRUE(NewClient().Get(kPods, kWeb).ok());
  EXPECT_EQ(sleeper_.sleeps().size(), 2u);
  EXPECT_GE(Slept(), milliseconds(200));
  // Who has waited for an answer in vain has waited long enough.
  transport_.Expect("GET", kPodPath, Broken(absl::DeadlineExceededError("slow")));
  EXPECT_TRUE(absl::IsDeadlineExceeded(NewClient().Get(kPods, kWeb).status()));
  transport_.Expect("GET", kPodPath, Broken());
  EXPECT_TRUE(absl::IsUnavailable(NewClient().WithoutRetries().Get(kPods, kWeb).status()));
}

TEST_F(ClientTest, CopiesShareTheRateLimit) {
  const Client client = NewClient({.rate = 10, .burst = 2});
  const Client copy = client.With(seconds(1));
  for (int i = 0; i < 4; ++i) {
    transport_.Expect("GET", kPodPath, Answer(200));
    EXPECT_TRUE((i % 2 == 0 ? client : copy).Get(kPods, kWeb).ok());
  }
  EXPECT_EQ(Slept(), milliseconds(200));
  EXPECT_EQ(Last().timeout, seconds(1));
}

TEST_F(ClientTest, CancellingEndsTheWaitForARetry) {
  const Cancellation cancellation;
  ScriptedReply busy = Answer(429, "{}", {{"retry-after", "1"}});
  busy.on_arrival = [cancellation] { cancellation.Cancel(); };
  transport_.Expect("GET", kPodPath, busy);
  EXPECT_TRUE(absl::IsCancelled(NewClient().With(cancellation).Get(kPods, kWeb).status()));
}

TEST_F(ClientTest, ListsPageByPage) {
  transport_.Expect("GET",
                    "/api/v1/pods?limit=500&labelSelector=a%3Db",
                    Answer(200,
                           R"({"metadata":{"resourceVersion":"9","continue":"c/1"},
                               "items":[{"metadata":{"name":"a"}}]})"));
  transport_.Expect("GET",
                    "/api/v1/pods?limit=500&labelSelector=a%3Db&continue=c%2F1",
                    Answer(200,
                           R"({"metadata":{"resourceVersion":"9"},
                               "items":[{"metadata":{"name":"b"}}]})"));
  const auto pods = NewClient().List(kPods, {.label_selector = "a=b"});
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_EQ(pods->size(), 2u);
  EXPECT_EQ(KeyOf((*pods)[1]).name, "b");
}

TEST_F(ClientTest, AContinuationThatExpiredStartsTheListOver) {
  transport_.Expect("GET",
                    "/api/v1/pods?limit=500",
                    Answer(200,
                           R"({"metadata":{"resourceVersion":"9","continue":"c"},
                               "items":[{"metadata":{"name":"gone"}}]})"));
  transport_.Expect("GET", "/api/v1/pods?limit=500&continue=c", Refusal(410, "Expired"));
  transport_.Expect("GET",
                    "/api/v1/pods?limit=0",
                    Answer(200,
                           R"({"metadata":{"resourceVersion":"12"},
                               "items":[{"metadata":{"name":"here"}}]})"));
  std::vector<std::string> names;
  const auto version = NewClient().List(
      kPods,
      {},
      {.begin = [&names] { names.clear(); },
       .object = [&names](const Json& object) { names.push_back(KeyOf(object).name); }});
  EXPECT_EQ(*version, "12");
  EXPECT_EQ(names, std::vector<std::string>{"here"});
}

TEST_F(ClientTest, AListMayBeEmptyButNotAbsent) {
  transport_.Expect(
      "GET", "/api", Answer(200, R"({"metadata":{"resourceVersion":"9"},"items":null})"));
  EXPECT_TRUE(NewClient().List(kPods, {})->empty());
  transport_.Expect("GET", "/api", Answer(200, R"({"metadata":{"resourceVersion":"9"}})"));
  EXPECT_TRUE(absl::IsDataLoss(NewClient().List(kPods, {}).status()));
}

TEST_F(ClientTest, AWatchAsksForBookmarksAndDeliversEvents) {
  transport_.Expect(
      "GET",
      "/api/v1/namespaces/default/pods",
      Lines({R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
             R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}})"}));
  std::vector<WatchEventType> types;
  const WatchOptions options{.resource_version = "7", .lifetime = seconds(300)};
  EXPECT_TRUE(NewClient()
                  .Watch(kPods,
                         {.ns = "default"},
                         options,
                         [&types](WatchEventType type, const Json& /*object*/) {
                           types.push_back(type);
                           return true;
                         })
                  .ok());
  EXPECT_EQ(types, (std::vector{WatchEventType::kAdded, WatchEventType::kBookmark}));
  EXPECT_EQ(Last().target,
            "/api/v1/namespaces/default/pods?watch=true&allowWatchBookmarks=true"
            "&timeoutSeconds=300&resourceVersion=7");
}

TEST_F(ClientTest, EndsOfAWatchAreTold) {
  const auto watch = [this](ScriptedReply reply) {
    transport_.Expect("GET", "/api/v1/pods", std::move(reply));
    return NewClient()
        .Watch(kPods, {}, {}, [](WatchEventType, const Json&) { return true; })
        .code();
  };
  using absl::StatusCode;
  EXPECT_EQ(watch(Lines({})), StatusCode::kOk);
  EXPECT_EQ(watch(Refusal(410, "Expired")), StatusCode::kOutOfRange);
  EXPECT_EQ(watch(Lines({R"({"type":"ERROR","object":{"code":410,"reason":"Expired"}})"})),
            StatusCode::kOutOfRange);
  EXPECT_EQ(watch(Lines({R"({"type":"ERROR","object":{"code":500}})"})), StatusCode::kInternal);
  EXPECT_EQ(watch(Lines({R"({"type":"ERROR"})"})), StatusCode::kUnknown);
  for (const char* garbage : {"<html>",
                              "{}",
                              "[]",
                              R"({"type":"NEW","object":{}})",
                              R"({"type":"ADDED","object":3})",
                              R"({"type":"ADDED"})"}) {
    EXPECT_EQ(watch(Lines({garbage})), StatusCode::kDataLoss) << garbage;
  }
  EXPECT_EQ(watch(Lines({}, absl::DeadlineExceededError("idle"))), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(watch(Answer(500)), StatusCode::kUnavailable);
}

TEST_F(ClientTest, AWatchObeysRetryAfterToo) {
  transport_.Expect("GET", "/api/v1/pods", Answer(429, "{}", {{"retry-after", "2"}}));
  const absl::Status status =
      NewClient().Watch(kPods, {}, {}, [](WatchEventType, const Json&) { return true; });
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(Slept(), seconds(2));
}

}  // namespace
}  // namespace adamant::kube
