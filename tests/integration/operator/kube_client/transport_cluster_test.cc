// The transport at a real API server: run by `tests/cluster/cluster.py run`, which tells the
// cluster in the environment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/auth/credentials.h"
#include "operator/kube_client/http/http_transport.h"
#include "services/common/base/clock.h"

namespace adamant::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr char kConfigMaps[] = "/api/v1/namespaces/default/configmaps";
constexpr milliseconds kLong{20'000};
constexpr milliseconds kShort{1'000};

void TellCluster(const std::string& command) {
  const std::string line = std::string(std::getenv("ADAMANT_CLUSTER_TOOL")) + " " + command;
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
}

class TransportClusterTest : public testing::Test {
 protected:
  TransportClusterTest() {
    const absl::StatusOr<Config> config = LoadConfig({}, ProcessEnvironment());
    EXPECT_TRUE(config.ok()) << config.status();
    config_ = *config;
    admin_ = std::make_unique<Credentials>(config_, clock_);
    transport_ = MakeTransport(config_, *admin_);
  }

  HttpResponse Send(const HttpRequest& request) {
    const absl::StatusOr<HttpResponse> response = transport_->Send(request, Cancellation());
    EXPECT_TRUE(response.ok()) << response.status();
    return response.value_or(HttpResponse{});
  }

  HttpResponse Create(const std::string& path, const json& object) {
    return Send({.method = "POST",
                 .target = path,
                 .headers = {{"content-type", "application/json"}},
                 .body = object.dump()});
  }

  HttpResponse CreateConfigMap(const std::string& name, std::size_t bytes = 1) {
    return Create(kConfigMaps,
                  {{"metadata", {{"name", name}}}, {"data", {{"x", std::string(bytes, 'x')}}}});
  }

  SystemClock clock_;
  Config config_;
  std::unique_ptr<Credentials> admin_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(TransportClusterTest, AClientCertificateIsAccepted) {
  EXPECT_EQ(Send({.target = "/version"}).status, 200);
  EXPECT_EQ(CreateConfigMap("made").status, 201);
  EXPECT_EQ(CreateConfigMap("made").status, 409);
  EXPECT_EQ(Send({.method = "DELETE", .target = std::string(kConfigMaps) + "/made"}).status, 200);
}

TEST_F(TransportClusterTest, ATokenIsAcceptedAndAWrongOneIsA401) {
  EXPECT_EQ(
      Create("/api/v1/namespaces/default/serviceaccounts", {{"metadata", {{"name", "robot"}}}})
          .status,
      201);
  const HttpResponse made =
      Create("/api/v1/namespaces/default/serviceaccounts/robot/token", {{"spec", json::object()}});
  Config config = config_;
  config.certificate = {};
  config.key = {};
  for (const bool right : {true, false}) {
    config.token.text =
        right ? json::parse(made.body)["status"]["token"].get<std::string>() : "wrong";
    Credentials robot(config, clock_);
    const auto response = MakeTransport(config, robot)
                              ->Send({.target = "/apis/authentication.k8s.io/v1"}, Cancellation());
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, right ? 200 : 401) << response->body;
  }
}

TEST_F(TransportClusterTest, ALargeListArrivesWhole) {
  constexpr int kObjects = 8;
  constexpr std::size_t kBytes = 500'000;
  for (int i = 0; i < kObjects; ++i) {
    ASSERT_EQ(CreateConfigMap("large-" + std::to_string(i), kBytes).status, 201);
  }
  const HttpResponse list = Send({.target = kConfigMaps});
  EXPECT_GT(list.body.size(), kObjects * kBytes);
  EXPECT_FALSE(json::parse(list.body, nullptr, false).is_discarded());
}

TEST_F(TransportClusterTest, EventsArriveWhileTheWatchIsOpen) {
  std::vector<std::string> names;
  const auto response = transport_->Stream(
      {.target = std::string(kConfigMaps) + "?watch=1&sendInitialEvents=true" +
                 "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"},
      kLong,
      [&](std::string_view line) {
        const json event = json::parse(line, nullptr, false);
        if (event["type"] == "BOOKMARK") {
          EXPECT_EQ(CreateConfigMap("seen").status, 201);
        }
        names.push_back(event["object"]["metadata"].value("name", ""));
        return names.back() != "seen";
      },
      Cancellation());
  EXPECT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(names.back(), "seen");
}

TEST_F(TransportClusterTest, AWatchOfAServerThatFallsSilentEndsAfterTheIdleTime) {
  SteadyClock::time_point paused;
  const auto response = transport_->Stream(
      {.target = std::string(kConfigMaps) + "?watch=1"},
      kShort,
      [&](std::string_view) {
        if (paused == SteadyClock::time_point()) {
          TellCluster("pause-api");
          paused = SteadyClock::now();
        }
        return true;
      },
      Cancellation());
  EXPECT_TRUE(absl::IsDeadlineExceeded(response.status())) << response.status();
  EXPECT_LT(SteadyClock::now() - paused, 5 * kShort);
  const auto request = transport_->Send({.target = "/version", .timeout = kShort}, Cancellation());
  EXPECT_TRUE(absl::IsDeadlineExceeded(request.status())) << request.status();
  TellCluster("resume-api");
  EXPECT_EQ(Send({.target = "/version"}).status, 200);
}

TEST_F(TransportClusterTest, AServerThatIsKilledIsUnavailableUntilItIsBack) {
  bool stopped = false;
  const auto response = transport_->Stream(
      {.target = std::string(kConfigMaps) + "?watch=1"},
      kLong,
      [&](std::string_view) {
        if (!std::exchange(stopped, true)) {
          TellCluster("stop-api");
        }
        return true;
      },
      Cancellation());
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  const auto refused = transport_->Send({.target = "/version"}, Cancellation());
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("refused"));
  TellCluster("start-api");
  EXPECT_EQ(Send({.target = "/version"}).status, 200);
}

}  // namespace
}  // namespace adamant::kube
