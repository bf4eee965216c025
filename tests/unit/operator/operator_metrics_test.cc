#include "operator/operator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace adamant {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

class OperatorMetricsTest : public testing::Test {
 protected:
  metrics::Registry registry_;
  OperatorMetrics metrics_{registry_};
};

TEST_F(OperatorMetricsTest, RequestsAreCountedByMethodAndCode) {
  metrics_.OnRequest({.method = "GET", .target = "/api/v1/pods"}, 200, false, milliseconds(3));
  metrics_.OnRequest({.method = "GET", .target = "/api/v1/pods"}, 200, false, milliseconds(3));
  metrics_.OnRequest({.method = "PUT", .target = "/x"}, 0, false, milliseconds(3));
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("rest_client_requests_total{code=\"200\",method=\"GET\"} 2"));
  EXPECT_THAT(text, HasSubstr("rest_client_requests_total{code=\"<error>\",method=\"PUT\"} 1"));
  EXPECT_THAT(text, HasSubstr("rest_client_request_duration_seconds_count{verb=\"GET\"} 2"));
}

TEST_F(OperatorMetricsTest, AWatchIsARequestWithoutADuration) {
  metrics_.OnRequest({.method = "GET", .target = "/watch"}, 200, true, std::chrono::minutes(5));
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("rest_client_requests_total{code=\"200\",method=\"GET\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("rest_client_request_duration_seconds_count")));
}

TEST_F(OperatorMetricsTest, OnlyPodsThatWereMadeAreCounted) {
  const std::string pods = "/api/v1/namespaces/a/pods?fieldValidation=Strict";
  const kube::HttpRequest create{.method = "POST", .target = pods};
  metrics_.OnRequest(
      {.method = "POST", .target = pods + "&dryRun=All"}, 201, false, milliseconds(1));
  metrics_.OnRequest(create, 201, false, milliseconds(1));
  metrics_.OnRequest(create, 409, false, milliseconds(1));
  metrics_.OnRequest(
      {.method = "POST", .target = "/api/v1/namespaces/a/events"}, 201, false, milliseconds(1));
  EXPECT_THAT(registry_.Text(), HasSubstr("adamant_operator_pods_created_total 1"));
}

TEST_F(OperatorMetricsTest, TheQueueAndItsWorkersAreMeasured) {
  metrics_.OnAdd();
  metrics_.OnDepth(3);
  metrics_.OnTaken(milliseconds(20));
  metrics_.OnDone(milliseconds(40));
  metrics_.OnRetry();
  metrics_.OnReconciled(kube::OperatorObserver::Outcome::kError);
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("workqueue_adds_total{name=\"trainingjob\"} 1"));
  EXPECT_THAT(text, HasSubstr("workqueue_depth{name=\"trainingjob\"} 3"));
  EXPECT_THAT(text, HasSubstr("workqueue_retries_total{name=\"trainingjob\"} 1"));
  EXPECT_THAT(text, HasSubstr("workqueue_queue_duration_seconds_sum{name=\"trainingjob\"} 0.02"));
  EXPECT_THAT(
      text,
      HasSubstr("controller_runtime_reconcile_time_seconds_sum{controller=\"trainingjob\"} 0.04"));
  EXPECT_THAT(text, HasSubstr("controller_runtime_active_workers{controller=\"trainingjob\"} 0"));
  EXPECT_THAT(text,
              HasSubstr("controller_runtime_reconcile_total{controller=\"trainingjob\","
                        "result=\"error\"} 1"));
}

TEST_F(OperatorMetricsTest, AReconcileIsKnownToHaveTakenLessThanItsTarget) {
  metrics_.OnDone(milliseconds(49));
  metrics_.OnDone(milliseconds(51));
  metrics_.OnDone(milliseconds(7));
  const auto bucket = [](const std::string& bound) {
    return "controller_runtime_reconcile_time_seconds_bucket{controller=\"trainingjob\",le=\"" +
           bound + "\"} ";
  };
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr(bucket("0.005") + "0"));
  EXPECT_THAT(text, HasSubstr(bucket("0.01") + "1"));
  EXPECT_THAT(text, HasSubstr(bucket("0.025") + "1"));
  EXPECT_THAT(text, HasSubstr(bucket("0.05") + "2"));
  EXPECT_THAT(text, HasSubstr(bucket("0.1") + "3"));
}

}  // namespace
}  // namespace adamant
