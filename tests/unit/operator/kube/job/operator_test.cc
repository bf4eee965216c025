#include "operator/kube/job/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube_client/base/sleeper.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "tests/fakes/kube/memory_api_server.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

// Which objects an operator looks at. None leads here: nobody gets the lease.
namespace adamant::kube {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;

using Targets = std::vector<std::string>;

class OperatorTest : public testing::Test {
 protected:
  /// Returns what an operator has asked for until it was ready; `refused`: what it is not given.
  Targets AskedUntilReady(const std::vector<std::string>& namespaces, const std::string& refused) {
    server_.SetFaults([&](const HttpRequest& request) {
      const MutexLock lock(mutex_);
      const bool is_lease = request.target.find("/leases") != std::string::npos;
      if (!is_lease) {
        targets_.push_back(request.target.substr(0, request.target.find('?')));
      }
      return is_lease || request.target.find(refused) != std::string::npos
                 ? MemoryApiServer::Fault::kRefuse
                 : MemoryApiServer::Fault::kNone;
    });
    Operator op(client_,
                client_,
                clock_,
                sleeper_,
                {.name_space = "system",
                 .identity = "a",
                 .control_listen = "127.0.0.1:0",
                 .pods = kPodSettings,
                 .namespaces = namespaces});
    op.Start();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!op.ready() && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(op.ready());
    op.Stop();
    const MutexLock lock(mutex_);
    return targets_;
  }

  SystemClock clock_;
  SystemSleeper sleeper_;
  MemoryApiServer server_{clock_, /*live=*/true};
  Client client_{server_, clock_, sleeper_, {.rate = 1e6, .burst = 1e6}};
  Mutex mutex_;
  Targets targets_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(OperatorTest, OneOfSomeNamespacesAsksForNothingThatIsElsewhere) {
  const Targets asked = AskedUntilReady({"team-a", "team-b"}, "/api/v1/nodes");
  EXPECT_THAT(asked,
              Each(AnyOf(HasSubstr("/namespaces/team-a/"), HasSubstr("/namespaces/team-b/"))));
  for (const char* ns : {"team-a", "team-b"}) {
    for (const char* kind : {"/trainingjobs", "/pods", "/poddisruptionbudgets"}) {
      EXPECT_THAT(asked, Contains(HasSubstr(std::string("/namespaces/") + ns + kind)));
    }
  }
}

TEST_F(OperatorTest, OneOfAllNamespacesListsThemAtOnceAndLooksAtNodes) {
  const Targets asked = AskedUntilReady({}, "/namespaces/");
  EXPECT_THAT(asked, Contains("/api/v1/nodes"));
  EXPECT_THAT(asked, Contains("/api/v1/pods"));
  EXPECT_THAT(asked, Contains("/apis/adamant.dev/v1alpha1/trainingjobs"));
}

// It begins to lead before there is an authority, which it makes, and listens once it is there.
TEST_F(OperatorTest, OneThatLeadsMakesTheCertificateAuthority) {
  const ObjectKey secret{"system", "adamant-ca"};
  ASSERT_TRUE(
      client_.Create(kSecrets, {{"metadata", {{"name", secret.name}, {"namespace", secret.ns}}}})
          .ok());
  OperatorOptions options{.name_space = "system",
                          .identity = "a",
                          .control_listen = "127.0.0.1:0",
                          .pods = kPodSettings,
                          .namespaces = {}};
  options.security = OperatorSecurity{.control_listen = "127.0.0.1:0",
                                      .control_service = "operators:7072",
                                      .certificates_listen = "127.0.0.1:0",
                                      .certificates_service = "operators:7071"};
  Operator op(client_, client_, clock_, sleeper_, options);
  op.Start();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto is_made = [&] { return client_.Get(kSecrets, secret).value().contains("data"); };
  while (!(is_made() && op.leads()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(is_made());
  EXPECT_TRUE(op.leads());
  op.Stop();
  EXPECT_FALSE(op.leads());
}

}  // namespace
}  // namespace adamant::kube
